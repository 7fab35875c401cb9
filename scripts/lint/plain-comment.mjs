import { findings } from './plain-words.mjs';

const DIRECTIVE = /^\s*(eslint|prettier|global |@ts-|@jest-)/;

/**
 * ESLint rule: the first sentence of a comment is plain English (`plain-words.mjs`). Neighbouring line comments count
 * as one. Earlier findings are in `eslint-suppressions.json`: a number per file that may only fall.
 */
export const plainComment = {
  meta: { type: 'suggestion', docs: { description: 'comments in plain words' }, schema: [] },
  create: (context) => ({
    Program() {
      for (const comment of joined(context.sourceCode.getAllComments())) {
        if (DIRECTIVE.test(comment.text)) continue;
        for (const message of findings(comment.text, { member: comment.block }))
          context.report({ loc: comment.loc, message });
      }
    },
  }),
};

/** Comments with their text; line comments on successive lines become one. */
function joined(comments) {
  const all = [];
  for (const { type, value, loc } of comments) {
    const last = all.at(-1);
    if (type === 'Block') all.push({ block: true, text: unmarked(value), loc });
    else if (
      last &&
      !last.block &&
      last.loc.end.line === loc.start.line - 1 &&
      last.loc.start.column === loc.start.column
    )
      Object.assign(last, { text: `${last.text} ${value.trim()}`, loc: { start: last.loc.start, end: loc.end } });
    else if (type === 'Line') all.push({ block: false, text: value.trim(), loc });
  }
  return all;
}

const unmarked = (block) =>
  block
    .replace(/^\*/, '')
    .replace(/^\s*\* ?/gm, '')
    .replace(/\s+/g, ' ')
    .trim();
