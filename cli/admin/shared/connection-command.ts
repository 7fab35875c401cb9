import { readFileSync } from 'node:fs';
import { Option, type Command } from 'commander';
import { PLATFORMS, type Platform } from '../../../domain/common/vendors';
import { type Run, uuid, words } from './arguments';

interface ConnectTo {
  account: string;
  platform?: Platform;
  channelId?: string;
  channelName?: string;
  shop?: string;
  secretFile?: string;
}

/** `lumio admin connect`. */
export function registerConnections(group: Command, run: Run): void {
  group
    .command('connect')
    .description('connect an account to a channel, or to a shop with the secret that signs its webhooks')
    .requiredOption('--account <account>', 'the account id', uuid)
    .addOption(new Option('--platform <platform>', 'whose channel').choices(PLATFORMS).conflicts('shop'))
    .option('--channel-id <id>', "the channel's id on that platform", words(200))
    .option('--channel-name <name>', 'what the channel is called (default: its id)', words(200))
    .option('--shop <domain>', 'the Shopify shop, like name.myshopify.com', words(253))
    .option('--secret-file <file>', "a file with the shop's webhook secret, or - for standard input")
    .addHelpText(
      'after',
      `
Channels have no secret of their own: their platforms sign under LUMIO_WEBHOOKS__YOUTUBE_SECRET, …KICK_PUBLIC_KEY and …TROVO_SECRET.
Connecting a connected shop again replaces its secret; every node goes by the new one within five seconds.`,
    )
    .action(({ account, platform, channelId, channelName, shop, secretFile }: ConnectTo, command: Command) => {
      const wrong = (text: string) => command.error(`error: ${text}`, { exitCode: 2 });
      if (shop !== undefined) {
        if (secretFile === undefined) return wrong('--shop needs --secret-file (a file, or - for standard input)');
        if (channelId !== undefined || channelName !== undefined) return wrong('a shop has no channel');
        return run(async (admin, context) => {
          await admin.requireAccount(context, account);
          const secret = readSecret(secretFile);
          return admin.connectShop(context, { account_id: account, shop_domain: shop, secret });
        });
      }
      if (platform === undefined || channelId === undefined)
        return wrong('name --platform and --channel-id, or --shop');
      if (secretFile !== undefined) return wrong('a channel has no secret of its own, see --help');
      return run(async (admin, context) => {
        await admin.requireAccount(context, account);
        return admin.connectChannel(context, {
          account_id: account,
          platform,
          platform_channel_id: channelId,
          channel_name: channelName ?? channelId,
        });
      });
    });
}

/** @throws Error with a one-line message without a readable secret */
function readSecret(file: string): string {
  const secret = readFileSync(file === '-' ? 0 : file, 'utf8').replace(/\r?\n$/, '');
  if (secret.trim() === '' || secret.length > 4096) throw new Error('the secret must have 1 to 4096 characters');
  return secret;
}
