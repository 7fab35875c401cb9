/** A guard, and what is known of a caller that it let pass. */
export type Narrowing<Guard, Known> = Guard & { readonly known?: Known };

/** At least one: leaving the guard out does not compile. */
export type Guards<Guard> = readonly [Guard, ...Guard[]];

type KnownOf<G> = G extends { readonly known?: infer Known } ? NonNullable<Known> : unknown;
/** A function per guard: inferring the argument of all of them at once gives the intersection of their facts. */
type AllKnown<G> = (G extends unknown ? (known: KnownOf<G>) => void : never) extends (known: infer Every) => void
  ? Every
  : never;

/** The caller as an operation with these guards meets it. */
export type Admitted<Caller, G extends readonly unknown[]> = Caller & AllKnown<G[number]>;
