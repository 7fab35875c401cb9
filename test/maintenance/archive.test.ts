import { archiveContract } from '../contracts/archive';
import { engines } from '../support/projections';

archiveContract('embedded', (t) => engines(t.db));
