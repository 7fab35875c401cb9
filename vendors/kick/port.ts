/** Subscriptions to a channel's events at Kick, made and ended with a token of that channel. */
export interface KickSubscriptions {
  /** Asks for what is missing. @throws HttpFailed (401 for a refused token), NotSent, OutcomeUnknown */
  ensure(token: string): Promise<void>;
  /** Ends all of the channel. Throws as {@link KickSubscriptions.ensure} does. */
  end(token: string): Promise<void>;
}
