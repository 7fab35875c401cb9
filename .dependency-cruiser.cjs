/** Imports go inward only: docs/architecture.md, "Rooms". */
const PRODUCT = ['commands', 'projections', 'read-api', 'ingest', 'realtime', 'reactors'];
/** Rooms that assemble the others, drive them from outside or measure them; no room imports these. */
const OUTER = ['api', 'bin', 'cli', 'demo', 'clients', 'web', 'bench', 'test'];
/** Rooms that the product rooms share, from the inside outwards: each imports those before it. */
const SHARED = ['access', 'app', 'services', 'views'];
const PORTS = ['^(engines|privacy|vendors)/[^/]+/port\\.ts$'];
/** Adapters behind ports, with the encryption of personal data. */
const ADAPTERS = ['engines', 'privacy/secrets', 'privacy/subject-keys'];

const below = (...rooms) => `^(${rooms.flat().join('|')})/`;

module.exports = {
  forbidden: [
    {
      name: 'domain-imports-the-kernel-alone',
      comment:
        'domain is pure: kernel, lib, zod (shapes), immutable (values), and libraries that read texts; nothing else',
      severity: 'error',
      from: { path: '^domain/' },
      to: { pathNot: ['^(domain|kernel|lib)/', 'node_modules/(zod|immutable|linkify-it|re2js|tldts|unhomoglyph)/'] },
    },
    {
      name: 'kernel-knows-no-room',
      comment: 'the kernel is what every room is written with: it imports lib, zod, and ports as types alone',
      severity: 'error',
      from: { path: '^kernel/' },
      to: { pathNot: ['^(kernel|lib)/', 'node_modules/zod/', ...PORTS] },
    },
    {
      name: 'lib-knows-no-word-of-the-product',
      severity: 'error',
      from: { path: '^lib/' },
      to: { pathNot: ['^lib/', 'node_modules/', '^node:'], dependencyTypesNot: ['core'] },
    },
    {
      name: 'kernel-imports-ports-as-types',
      severity: 'error',
      from: { path: '^kernel/' },
      to: { path: '^(engines|privacy)/', dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'maintenance-imports-inward',
      comment:
        'maintenance works on logs and read models: domain, shared rooms, ports, and the machinery of projections',
      severity: 'error',
      from: { path: '^(maintenance|privacy/erasure)/' },
      to: {
        path: below(OUTER, PRODUCT, 'migrations', 'vendors', ADAPTERS),
        pathNot: ['^projections/runtime/', ...PORTS],
      },
    },
    ...PRODUCT.map((room) => ({
      name: `${room}-imports-inward`,
      comment: 'a room imports domain, shared rooms, ports and packages; what it needs of another room is passed in',
      severity: 'error',
      from: { path: `^${room}/` },
      to: {
        path: below(OUTER, PRODUCT, 'migrations', 'maintenance', 'privacy/erasure', 'vendors', ADAPTERS),
        // Reactors have checkpoints and dead letters like projections.
        pathNot: [`^${room}/`, ...(room === 'reactors' ? ['^projections/runtime/'] : []), ...PORTS],
      },
    })),
    {
      name: 'shared-rooms-import-ports',
      severity: 'error',
      from: { path: below(SHARED) },
      to: {
        path: below(OUTER, PRODUCT, 'migrations', 'maintenance', 'privacy/erasure', 'vendors', ADAPTERS),
        pathNot: PORTS,
      },
    },
    ...SHARED.slice(0, -1).map((room, place) => ({
      name: `${room}-imports-inward`,
      comment: 'who calls, how an operation is bound, services, views: each imports those before it',
      severity: 'error',
      from: { path: below(room) },
      to: { path: below(SHARED.slice(place + 1)), dependencyTypesNot: ['type-only'] },
    })),
    {
      name: 'engines-know-no-room',
      severity: 'error',
      from: { path: below(ADAPTERS) },
      to: { path: below(OUTER, PRODUCT, SHARED, 'maintenance', 'privacy/erasure') },
    },
    {
      name: 'vendors-know-no-room',
      comment: 'calls to the outside: the kernel, ports and packages',
      severity: 'error',
      from: { path: '^vendors/' },
      to: {
        path: below(OUTER, PRODUCT, SHARED, 'maintenance', 'migrations', 'privacy', 'engines', 'domain'),
        pathNot: PORTS,
      },
    },
    {
      name: 'migrations-know-nothing',
      severity: 'error',
      from: { path: '^migrations/' },
      to: { path: below(OUTER, PRODUCT, SHARED, 'maintenance', 'privacy', 'engines', 'vendors') },
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
