import { randomUUID } from 'node:crypto';
import { type Graph, graphProblem, incompleteNodes } from '../../domain/automation/automation-graphs';
import { holds } from '../../domain/automation/nodes/comparisons';

const [a, b, c, d] = Array.from({ length: 4 }, () => randomUUID()) as [string, string, string, string];
const manual = { id: a, type: 'trigger:manual', config: {} };
const say = { id: b, type: 'action:send_chat_message', config: { message: 'Hi' } };
const pause = { id: c, type: 'action:wait', config: { seconds: 1 } };
const edge = (from: string, to: string, output = 'done') => ({ from, to, output });
const start = edge(a, b, 'next');
const graph = (nodes: object[], edges: object[]) => ({ nodes, edges }) as unknown as Graph;

test('valid graphs have no problem: an empty one, branches, and a cycle with a wait', () => {
  expect(graphProblem(graph([], []))).toBeNull();
  expect(graphProblem(graph([manual, say, pause], [start, edge(a, c, 'next')]))).toBeNull();
  expect(graphProblem(graph([manual, say, pause], [start, edge(b, c), edge(c, b), edge(b, c, 'failed')]))).toBeNull();
});

test.each<[string, Graph, string]>([
  ['an unknown type', graph([{ id: a, type: 'trigger:none', config: {} }], []), a],
  ['a type of all objects', graph([{ id: a, type: 'constructor', config: {} }], []), a],
  ['an unknown member of a config', graph([{ ...manual, config: { x: 1 } }], []), a],
  ['a missing member of a config', graph([manual, { ...say, config: {} }], [start]), b],
  ['a repeated id', graph([manual, { ...say, id: a }], []), a],
  ['an edge to nowhere', graph([manual], [edge(a, d, 'next')]), d],
  ['an edge from nowhere', graph([manual], [edge(d, a)]), d],
  ['an unknown output', graph([manual, say], [edge(a, b, 'done')]), a],
  ['an edge into a trigger', graph([manual, say], [start, edge(b, a)]), a],
  ['a node that no trigger reaches', graph([manual, say], []), b],
  ['a cycle without a wait', graph([manual, say, { ...say, id: d }], [start, edge(b, d), edge(d, b)]), b],
])('%s is a problem that names the node', (_name, broken, id) => {
  expect(graphProblem(broken)).toContain(id);
});

test('more than 200 nodes, or 64 KiB, are a problem', () => {
  const nodes = Array.from({ length: 201 }, () => ({ ...manual, id: randomUUID() }));
  expect(graphProblem(graph(nodes.slice(1), []))).toBeNull();
  expect(graphProblem(graph(nodes, []))).toContain('200');
  const long = Array.from({ length: 5 }, () => ({ ...say, id: randomUUID(), config: { message: 'x'.repeat(16_000) } }));
  const edges = long.map(({ id }) => edge(a, id, 'next'));
  expect(graphProblem(graph([manual, ...long], edges))).toContain('64 KiB');
});

test('what exports leave out may lack in an import, and makes a node incomplete', () => {
  const other = { id: b, type: 'action:run_automation', config: {} };
  const imported = graph([manual, other], [start]);
  expect(graphProblem(imported)).toContain(b);
  expect(graphProblem(imported, { may_lack: true })).toBeNull();
  expect(incompleteNodes(imported)).toEqual([b]);
});

test('numbers compare as numbers, other values as text without case', () => {
  expect(holds('9', 'less', 10)).toBe(true);
  expect(holds('10.0', 'equals', 10)).toBe(true);
  expect(holds('9a', 'less', '10a')).toBe(false);
  expect(holds('Hello', 'equals', 'hELLO')).toBe(true);
  expect(holds('Hello', 'starts_with', 'HE')).toBe(true);
  expect(holds(true, 'equals', 'TRUE')).toBe(true);
  expect(holds(undefined, 'equals', '')).toBe(true);
  expect(holds('', 'at_least', 0)).toBe(false);
});
