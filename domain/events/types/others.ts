import { AT, type EventType, typesOf, WRITTEN } from './type';

const trovo = typesOf('trovo');
const discord = typesOf('discord');
const shopify = typesOf('shopify');

const sender = { sender_id: '100000042', nick_name: 'Ada L', user_name: 'ada_l', send_time: 1_768_501_800 };
const SENDER = {
  optional: ['type', 'send_time', 'nick_name', 'user_name', 'sender_id', 'content', 'message_id'],
  digits: ['type', 'send_time', 'sender_id'],
};
const chat = (type: number, content: string) => ({
  type,
  content,
  ...sender,
  message_id: '1768501800_100000021_100000042',
});

/** Trovo's events: `raw` is the message of its chat, or what its webhook carries. Source: spec doc3 §6.2. */
export const TROVO: readonly EventType[] = [
  trovo('subscribe', 'Somebody subscribes, or gives subscriptions away', chat(5001, 'Tier 1'), SENDER),
  trovo(
    'spell',
    'Somebody casts a spell, which costs Mana or Elixir',
    chat(5, '{"gift":"FieryDragon","num":2,"gift_value":500,"value_type":"Elixir"}'),
    SENDER,
  ),
  trovo('subscriber', 'Somebody subscribes; the other word of Trovo’s workers', chat(5001, 'Tier 1'), {
    ...SENDER,
    ...WRITTEN,
  }),
  trovo('follower', 'Somebody follows the channel', chat(5003, ''), { ...SENDER, ...WRITTEN }),
  trovo('raid', 'Another channel raids this one', chat(5008, '{"raiderNum":"96"}'), { ...SENDER, ...WRITTEN }),
];

const user = { id: '760910136960745400', username: 'ada_l', global_name: 'Ada', avatar: null };
const member = {
  guild_id: '1132079436691415100',
  user,
  nick: null,
  roles: [],
  joined_at: AT,
  premium_since: null,
  pending: false,
};
const USER = ['user.username', 'user.global_name', 'user.avatar', 'nick', 'roles', 'joined_at', 'pending'];
const MEMBER = {
  ...WRITTEN,
  optional: [...USER, 'premium_since'],
  nullable: ['user.global_name', 'user.avatar', 'nick', 'premium_since', 'joined_at'],
};

/** Events of the members of the account's guild: `raw` is the gateway's payload. Source: spec doc3 §6.2. */
export const DISCORD: readonly EventType[] = [
  discord('member_join', 'Somebody joins the guild', member, MEMBER),
  discord(
    'member_leave',
    'Somebody leaves the guild, by themselves or not',
    { guild_id: member.guild_id, user },
    MEMBER,
  ),
  discord('boost', 'Somebody begins to boost the guild', { ...member, premium_since: AT }, MEMBER),
];

const tips = typesOf('streamelements');

/** Tips that were paid: `raw` is the tip without the giver’s e-mail address and country. Source: spec doc3 §6.2. */
export const STREAMELEMENTS: readonly EventType[] = [
  tips(
    'tip',
    'A tip was paid and may be shown',
    {
      _id: '67b5f39d07ecd4c594e60f73',
      channel: '5ad23dcc18fff500d78c5348',
      donation: {
        user: { username: 'Ada L' },
        message: 'For the chair',
        amount: 4.2,
        currency: 'USD',
        paymentMethod: 'scheme',
      },
      provider: 'paypal',
      status: 'success',
      approved: 'allowed',
      createdAt: AT,
      updatedAt: AT,
      transactionId: '2YH79902JR1691017',
    },
    { optional: ['donation.paymentMethod', 'donation.message', 'updatedAt', 'transactionId', 'provider', 'channel'] },
  ),
];

const customer = { id: 115_310_627_314_723, first_name: 'Ada', last_name: 'L' };
const order = {
  id: 820_982_911_946_154,
  admin_graphql_api_id: 'gid://shopify/Order/820982911946154',
  name: '#1001',
  created_at: AT,
  updated_at: AT,
  currency: 'EUR',
  total_price: '39.80',
  financial_status: 'pending',
  test: false,
  customer,
  line_items: [{ title: 'Mug', quantity: 2, price: '19.90' }],
};
const ORDER = {
  ...WRITTEN,
  nullable: ['customer'],
  optional: ['customer', 'test', 'updated_at', 'admin_graphql_api_id'],
};

/** The shop’s events: `raw` is the body of the webhook, of which every member of Shopify is kept. Source: doc3 §4.2. */
export const SHOPIFY: readonly EventType[] = [
  shopify('order', 'An order was made', order, ORDER),
  shopify('order_paid', 'An order was paid', { ...order, financial_status: 'paid' }, ORDER),
  shopify(
    'product',
    'A product was made',
    {
      id: 788_032_119_674_292,
      title: 'Mug',
      vendor: 'Cool Streamer',
      status: 'active',
      created_at: AT,
      updated_at: AT,
      variants: [{ title: 'Default', price: '19.90' }],
    },
    { ...WRITTEN, optional: ['updated_at', 'status'], nullable: ['created_at', 'updated_at'] },
  ),
];
