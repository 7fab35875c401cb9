import { handle } from '../../app/write-path/command-handler';
import { featureFlag, featureFlagStream } from '../../domain/operators/feature-flags';
import { asOperator, nowText, OPERATOR, type AdminServices } from './shared/operator';

/** Turns a feature on or off for everyone. @throws DomainError `UNKNOWN_FLAG` */
export async function switchFeature(services: AdminServices, flag: string, enabled: boolean): Promise<void> {
  await handle(asOperator(OPERATOR), services, {
    decider: featureFlag,
    stream: featureFlagStream(flag),
    command: { type: 'feature_flag:switch', flag, enabled, now: nowText() },
  });
}
