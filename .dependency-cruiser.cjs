/** Imports go inward only: docs/architecture.md, "Rooms". */
const PRODUCT = ['commands', 'projections', 'read-api', 'ingest', 'realtime', 'reactors'];
/** What puts the rooms together, drives them from outside or measures them; no room imports it. */
const OUTER = ['api', 'bin', 'cli', 'demo', 'clients', 'web', 'bench', 'test'];
const PORTS = ['^engines/[^/]+/port\\.ts$', '^vendors/[^/]+/port\\.ts$'];

const below = (...rooms) => `^(${rooms.flat().join('|')})/`;

module.exports = {
  forbidden: [
    {
      name: 'domain-imports-the-kernel-alone',
      comment:
        'domain is pure: the kernel, no other room, no node module, no package but zod (shapes) and immutable (values)',
      severity: 'error',
      from: { path: '^domain/' },
      to: { pathNot: ['^domain/', '^kernel/', 'node_modules/(zod|immutable)/'] },
    },
    {
      name: 'kernel-knows-no-room',
      comment: 'the kernel is what every room is written with: it imports zod, and ports as types alone',
      severity: 'error',
      from: { path: '^kernel/' },
      to: { pathNot: ['^kernel/', 'node_modules/zod/', '^engines/[^/]+/port\\.ts$'] },
    },
    {
      name: 'kernel-imports-ports-as-types',
      severity: 'error',
      from: { path: '^kernel/' },
      to: { path: '^engines/', dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'maintenance-imports-inward',
      comment: 'maintenance works on logs and read models: domain, access, ports, and the machinery of projections',
      severity: 'error',
      from: { path: '^maintenance/' },
      to: {
        path: below(OUTER, PRODUCT, 'migrations', 'vendors', 'engines'),
        pathNot: ['^projections/runtime/', ...PORTS],
      },
    },
    ...PRODUCT.map((room) => ({
      name: `${room}-imports-inward`,
      comment: 'a room imports domain, access, ports and packages; what it needs of another room is passed in',
      severity: 'error',
      from: { path: `^${room}/` },
      to: {
        path: below(OUTER, PRODUCT, 'migrations', 'maintenance', 'vendors', 'engines'),
        // Reactors have checkpoints and dead letters like projections.
        pathNot: [`^${room}/`, ...(room === 'reactors' ? ['^projections/runtime/'] : []), ...PORTS],
      },
    })),
    {
      name: 'access-imports-ports',
      severity: 'error',
      from: { path: '^access/' },
      to: {
        path: below(OUTER, PRODUCT, 'migrations', 'maintenance', 'vendors', 'engines'),
        pathNot: PORTS,
      },
    },
    {
      name: 'engines-know-no-room',
      severity: 'error',
      from: { path: '^engines/' },
      to: { path: below(OUTER, PRODUCT, 'access', 'maintenance') },
    },
    {
      name: 'vendors-know-no-room',
      comment: 'calls to the outside: the kernel, ports and packages',
      severity: 'error',
      from: { path: '^vendors/' },
      to: { path: below(OUTER, PRODUCT, 'access', 'maintenance', 'migrations', 'engines', 'domain'), pathNot: PORTS },
    },
    {
      name: 'migrations-know-nothing',
      severity: 'error',
      from: { path: '^migrations/' },
      to: { path: below(OUTER, PRODUCT, 'access', 'maintenance', 'engines', 'vendors') },
    },
    {
      name: 'front-door-needs-no-assembly',
      comment: 'what puts the rooms together is passed in to the front door, never imported by it',
      severity: 'error',
      from: { path: '^api/' },
      to: { path: below('bin', 'cli', 'demo') },
    },
    {
      name: 'clients-stand-alone',
      comment: 'a client is taken out of here and used elsewhere: it imports itself, no package and nothing of Node',
      severity: 'error',
      from: { path: '^clients/' },
      to: { pathNot: '^clients/' },
    },
    {
      name: 'web-uses-the-client',
      comment: 'pages see what every front end sees: the API, and the client',
      severity: 'error',
      from: { path: '^web/' },
      to: { pathNot: '^(web|clients)/' },
    },
    {
      name: 'product-needs-no-tests',
      severity: 'error',
      from: { pathNot: '^(test|bench)/' },
      to: { path: '^(test|bench)/' },
    },
    {
      name: 'no-circles',
      severity: 'error',
      from: {},
      to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '(^|/)(dist|node_modules/.*/node_modules)/' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: { extensions: ['.ts', '.js', '.mjs', '.cjs', '.json'] },
  },
};
