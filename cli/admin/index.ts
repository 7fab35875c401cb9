export { createAccount, replaceOwner, requireAccount, setFeatures, setMembership } from './accounts';
export { connectChannel, connectShop } from './connections';
export { switchFeature } from './feature-flags';
export { setPlan, setPlanFeatures } from './plans';
export { createAdminContext } from './services';
export { openUserSession } from './sessions';
export { createSystemKey, revokeSystemKey } from './system-keys';
export { createBoundToken, createPopoutToken, createServiceKey, revokeBoundToken } from './tokens';
export { createUser, setAdminRole } from './users';
