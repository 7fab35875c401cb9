import { z } from 'zod';
import { cooldownInput, commandInput, platformsInput, responseInput, roleInput } from '../../app/bot-command-input';
import { adminPermission, command, conflict, del, feature, forbidden, invalid, notFound } from '../../app/operation';
import { patch, permission, post, put, type Refuse } from '../../app/operation';
import type { RequestContext } from '../../access/authentication/caller';
import { actFor, type Act } from '../../app/write-path/act';
import { load } from '../../app/write-path/aggregate-cache';
import type { Services } from '../../app/services';
import { automation, automationStream } from '../../domain/automation/automations';
import {
  botCommand,
  type BotCommand as CommandState,
  type BotCommandEvent,
  botCommandStream,
  type Changes,
  type Chosen,
  commandReservations,
} from '../../domain/automation/bot-commands';
import { MAX_COMMANDS } from '../../domain/automation/bot-command-counts';
import { botCommandOverride, botCommandOverrideStream } from '../../domain/automation/bot-command-overrides';
import { isWeaker } from '../../domain/automation/bot-roles';
import { BOT_PLATFORMS } from '../../domain/common/vendors';
import { DomainError } from '../../kernel/errors';
import { countWrites } from '../../services/automation/command-counts';
import type { StreamWrite } from '../../engines/event-store/port';
import { UUID } from '../../lib/hash/uuid';
import { adminBotCommandOf, BotCommand, botCommandOf } from '../../views/automation/bot-commands';

const BOTS = feature('feature:bots');
const NOT_FOUND = { COMMAND_NOT_FOUND: notFound('Command not found') };
const GLOBAL_COMMAND = {
  GLOBAL_COMMAND: forbidden('Commands of all accounts are changed by operators; an override changes them for you'),
};
const ANSWERS = {
  RESPONSE_MISSING: invalid('response is required for text and template'),
  AUTOMATION_MISSING: invalid('automation_id must be the id of an automation'),
  AUTOMATION_NOT_FOUND: notFound('Automation not found'),
};
const NAMES = {
  TAKEN: conflict('Another command has this name or alias'),
  VALUE_TOO_LONG: invalid('name and alias must be 50 characters or less'),
};
const TOO_MANY = { TOO_MANY_COMMANDS: conflict(`There are at most ${MAX_COMMANDS} commands`) };
const Deleted = z.object({ success: z.boolean() }).meta({ id: 'DeleteBotCommandResult' });

type Input = z.output<z.ZodObject<typeof commandInput>>;

/** The automation that a command names, where its type has one. */
function automationOf({ response_type, automation_id }: Pick<Input, 'response_type' | 'automation_id'>): string | null {
  if (response_type !== 'automation' || !automation_id) return null;
  const id = automation_id.toLowerCase();
  if (!UUID.test(id)) throw new DomainError('AUTOMATION_MISSING');
  return id;
}

/** The refusal of an automation that the account of a command does not have; false without one. */
async function missingAutomation(
  { events }: Pick<Services, 'events'>,
  account_id: string | null,
  automation_id: string | null | undefined,
): Promise<DomainError | false> {
  if (automation_id === null || automation_id === undefined) return false;
  const state = (await load(events, automation, automationStream(automation_id)))?.state;
  const is_own = state?.status === 'active' && state.account_id === account_id;
  return is_own ? false : new DomainError('AUTOMATION_NOT_FOUND');
}

const chosenOf = (input: Input): Chosen => ({
  ...{ name: input.name, alias: input.alias ?? null, description: input.description || null },
  ...{ response_type: input.response_type, response: input.response ?? null, automation_id: automationOf(input) },
  ...{ platforms: input.platforms ?? [...BOT_PLATFORMS], min_role: input.min_role ?? 'everyone' },
  ...{ cooldown_global: input.cooldown_global ?? 0, cooldown_user: input.cooldown_user ?? 0 },
  ...{ discord_form: input.discord_form ?? 'both', enabled: input.enabled ?? true },
});

type Counting = (events: readonly BotCommandEvent[]) => Promise<StreamWrite[]>;

/** Counts the commands of their account in the append of their events. */
const counting =
  (context: RequestContext, services: Pick<Services, 'db' | 'events'>): Counting =>
  (events) =>
    countWrites(context, services, events);

/** Creates a command of an account, or of all accounts (null). */
async function create(
  act: Act,
  services: Pick<Services, 'events'>,
  additionalWrites: Counting,
  { command_id, account_id, input }: { command_id: string; account_id: string | null; input: Input },
): Promise<BotCommand> {
  const chosen = chosenOf(input);
  const missing = await missingAutomation(services, account_id, chosen.automation_id);
  const { state } = await act(
    botCommand,
    botCommandStream(command_id),
    { type: 'bot_command:create', command_id, account_id, ...chosen },
    {
      precondition: ({ status }) => status === 'none' && missing,
      reservations: (events) => commandReservations(botCommand.initial, events),
      additionalWrites,
    },
  );
  return shown(state);
}

/** A command of whose row nothing is known yet. */
function shown({ status: _status, command_id, ...command }: CommandState): BotCommand {
  return { ...command, platforms: [...command.platforms], id: command_id, use_count: 0, override: null };
}

/** Options of an act on a command that `of` must allow; they release and take its names. */
function named(of: (state: CommandState) => DomainError | false | void) {
  let before: CommandState = botCommand.initial;
  return {
    precondition(state: CommandState) {
      before = state;
      return of(state);
    },
    reservations: (events: Parameters<typeof commandReservations>[1]) => commandReservations(before, events),
  };
}

/** Refuses commands of other accounts and of all accounts. */
const ownedBy =
  (account_id: string, refuse: Refuse<typeof NOT_FOUND & typeof GLOBAL_COMMAND>) => (state: CommandState) => {
    if (state.status !== 'active') return refuse('COMMAND_NOT_FOUND');
    if (state.account_id === null) return refuse('GLOBAL_COMMAND');
    return state.account_id !== account_id && refuse('COMMAND_NOT_FOUND');
  };

const changes = {
  ...commandInput,
  name: commandInput.name.optional(),
  response_type: commandInput.response_type.optional(),
};

/** Changes of the input over the stored command; absent members stay, null takes an optional one away. */
function changesOf(
  input: z.output<z.ZodObject<typeof changes>>,
  { response_type, automation_id }: Pick<CommandState, 'response_type' | 'automation_id'>,
): Changes {
  const type = input.response_type ?? response_type;
  const automation = input.automation_id === undefined ? automation_id : input.automation_id;
  return {
    ...{ name: input.name, alias: input.alias, response_type: input.response_type, response: input.response },
    description: input.description === undefined ? undefined : input.description || null,
    automation_id: automationOf({ response_type: type, automation_id: automation }),
    ...{ platforms: input.platforms ?? undefined, min_role: input.min_role ?? undefined },
    ...{ cooldown_global: input.cooldown_global ?? undefined, cooldown_user: input.cooldown_user ?? undefined },
    ...{ discord_form: input.discord_form ?? undefined, enabled: input.enabled ?? undefined },
  };
}

/** As {@link missingAutomation}, of an automation that the command does not name yet. */
const missingNewAutomation = (
  services: Pick<Services, 'events'>,
  stored: CommandState,
  { automation_id }: Pick<Changes, 'automation_id'>,
) => missingAutomation(services, stored.account_id, automation_id === stored.automation_id ? null : automation_id);

/** The command's state, for changes that depend on it. */
async function stateOf({ events }: Pick<Services, 'events'>, id: string): Promise<CommandState> {
  return (await load(events, botCommand, botCommandStream(id)))?.state ?? botCommand.initial;
}

export const createBotCommand = command({
  name: 'createBotCommand',
  summary: 'Makes a command that the bot answers in the chats of the account',
  rest: post('/v1/bot-commands', { status: 201, location: ({ id }: BotCommand) => `/v1/bot-commands/${id}` }),
  graphql: { argument: 'input' },
  guard: [BOTS, permission('bot-commands:create')],
  input: z.object(commandInput).meta({ id: 'CreateBotCommandInput' }),
  output: BotCommand,
  errors: { ...ANSWERS, ...NAMES, ...TOO_MANY },
  run: ({ input, caller: { account_id }, context, act, newId }, services) =>
    create(act, services, counting(context, services), { command_id: newId('bot-command'), account_id, input }),
});

export const updateBotCommand = command({
  name: 'updateBotCommand',
  summary: 'Changes a command of the account; absent members stay',
  rest: patch('/v1/bot-commands/{id}'),
  graphql: { argument: 'input', flat_arguments: ['id'] },
  guard: [BOTS, permission('bot-commands:edit')],
  input: z.object({ id: z.uuid(), ...changes }).meta({ id: 'UpdateBotCommandInput' }),
  output: BotCommand,
  errors: { ...NOT_FOUND, ...GLOBAL_COMMAND, ...ANSWERS, ...NAMES },
  async run({ input: { id, ...input }, caller: { account_id }, act, refuse }, services) {
    const stored = await stateOf(services, id);
    const refusal = ownedBy(account_id, refuse);
    const refused = refusal(stored);
    if (refused) throw refused;
    const update = { type: 'bot_command:update', changes: changesOf(input, stored) } as const;
    const missing = await missingNewAutomation(services, stored, update.changes);
    const options = named((state) => refusal(state) || missing);
    const { state } = await act(botCommand, botCommandStream(id), update, options);
    return (await botCommandOf(services.db, account_id, id)) ?? shown(state);
  },
});

export const deleteBotCommand = command({
  name: 'deleteBotCommand',
  summary: 'Deletes a command of the account; its name and alias are free again',
  rest: del('/v1/bot-commands/{id}'),
  guard: [BOTS, permission('bot-commands:delete')],
  input: z.object({ id: z.uuid() }),
  output: Deleted,
  errors: { ...NOT_FOUND, ...GLOBAL_COMMAND },
  async run({ input: { id }, caller: { account_id }, context, act, refuse }, services) {
    const options = { ...named(ownedBy(account_id, refuse)), additionalWrites: counting(context, services) };
    await act(botCommand, botCommandStream(id), { type: 'bot_command:delete' }, options);
    return { success: true };
  },
});

const replacedInput = {
  response: responseInput.nullish(),
  platforms: platformsInput.nullish(),
  min_role: roleInput.nullish().describe("Not weaker than the command's own"),
  cooldown_global: cooldownInput.nullish(),
  cooldown_user: cooldownInput.nullish(),
  enabled: z.boolean().nullish(),
};

export const setBotCommandOverride = command({
  name: 'setBotCommandOverride',
  summary: 'Changes a command of all accounts for this account; absent members are as the command says',
  rest: put('/v1/bot-commands/{id}/override'),
  graphql: { argument: 'input', flat_arguments: ['id'] },
  guard: [BOTS, permission('bot-commands:edit')],
  input: z.object({ id: z.uuid(), ...replacedInput }).meta({ id: 'SetBotCommandOverrideInput' }),
  output: BotCommand,
  errors: { ...NOT_FOUND, WEAKER_ROLE: invalid("min_role must not be weaker than the command's own: {min_role}") },
  async run({ input: { id, ...input }, caller: { account_id }, act, refuse }, services) {
    const global = await stateOf(services, id);
    if (global.status !== 'active' || global.account_id !== null) throw refuse('COMMAND_NOT_FOUND');
    const min_role = input.min_role ?? null;
    if (min_role !== null && isWeaker(min_role, global.min_role))
      throw refuse('WEAKER_ROLE', { min_role: global.min_role });
    const replaced = {
      ...{ response: input.response ?? null, platforms: input.platforms ?? null, min_role },
      ...{ cooldown_global: input.cooldown_global ?? null, cooldown_user: input.cooldown_user ?? null },
      enabled: input.enabled ?? null,
    };
    const of = { account_id, command_id: id };
    const set = { type: 'bot_command:set_override', ...of, replaced } as const;
    await act(botCommandOverride, botCommandOverrideStream(of), set);
    return (await botCommandOf(services.db, account_id, id)) ?? { ...shown(global), override: replaced };
  },
});

export const deleteBotCommandOverride = command({
  name: 'deleteBotCommandOverride',
  summary: 'Lets a command of all accounts be as operators made it',
  rest: del('/v1/bot-commands/{id}/override'),
  guard: [BOTS, permission('bot-commands:edit')],
  input: z.object({ id: z.uuid() }),
  output: z.object({ success: z.boolean() }).meta({ id: 'DeleteBotCommandOverrideResult' }),
  errors: { OVERRIDE_NOT_FOUND: notFound('Override not found') },
  async run({ input: { id }, caller: { account_id }, act }) {
    const of = { account_id, command_id: id };
    await act(botCommandOverride, botCommandOverrideStream(of), { type: 'bot_command:remove_override', ...of });
    return { success: true };
  },
});

export const adminCreateBotCommand = command({
  name: 'adminCreateBotCommand',
  summary: 'Makes a command of all accounts',
  rest: post('/v1/admin/bot-commands', { status: 201 }),
  graphql: { argument: 'input' },
  guard: [adminPermission('bot-commands:create')],
  input: z.object(commandInput).meta({ id: 'AdminCreateBotCommandInput' }),
  output: BotCommand,
  errors: { ...ANSWERS, ...NAMES, ...TOO_MANY },
  run: ({ input, context, act, newId }, services) =>
    create(act, services, counting(context, services), { command_id: newId('bot-command'), account_id: null, input }),
});

/** Refuses commands of dissolved accounts, whose events stay. @throws DomainError COMMAND_NOT_FOUND */
async function requireAccount({ db }: Pick<Services, 'db'>, account_id: string | null): Promise<void> {
  if (account_id === null) return;
  const rows = await db.query('select 1 as one from accounts where id = $1', [account_id], 'account-is-there');
  if (rows.length === 0) throw new DomainError('COMMAND_NOT_FOUND');
}

export const adminUpdateBotCommand = command({
  name: 'adminUpdateBotCommand',
  summary: 'Changes a command of one account or of all; absent members stay',
  rest: patch('/v1/admin/bot-commands/{id}'),
  graphql: { argument: 'input', flat_arguments: ['id'] },
  guard: [adminPermission('bot-commands:edit')],
  input: z.object({ id: z.uuid(), ...changes }).meta({ id: 'AdminUpdateBotCommandInput' }),
  output: BotCommand,
  errors: { ...NOT_FOUND, ...ANSWERS, ...NAMES },
  async run({ input: { id, ...input }, caller, context }, services) {
    const stored = await stateOf(services, id);
    const { account_id } = stored;
    await requireAccount(services, account_id);
    // The events are the account's.
    const act = actFor({ caller: { ...caller, account_id: account_id ?? caller.account_id }, context }, services);
    const update = { type: 'bot_command:update', changes: changesOf(input, stored) } as const;
    const missing = await missingNewAutomation(services, stored, update.changes);
    const { state } = await act(
      botCommand,
      botCommandStream(id),
      update,
      named(({ status }) => status === 'active' && missing),
    );
    return (await adminBotCommandOf(services.db, { id, account_id })) ?? shown(state);
  },
});

export const adminDeleteBotCommand = command({
  name: 'adminDeleteBotCommand',
  summary: 'Deletes a command of one account or of all',
  rest: del('/v1/admin/bot-commands/{id}'),
  guard: [adminPermission('bot-commands:delete')],
  input: z.object({ id: z.uuid() }),
  output: z.object({ success: z.boolean() }).meta({ id: 'AdminDeleteBotCommandResult' }),
  errors: NOT_FOUND,
  async run({ input: { id }, caller, context }, services) {
    const { account_id } = await stateOf(services, id);
    await requireAccount(services, account_id);
    const act = actFor({ caller: { ...caller, account_id: account_id ?? caller.account_id }, context }, services);
    const options = { ...named(noCondition), additionalWrites: counting(context, services) };
    await act(botCommand, botCommandStream(id), { type: 'bot_command:delete' }, options);
    return { success: true };
  },
});

const noCondition = () => undefined;
