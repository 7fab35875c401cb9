export interface LinkTimings {
  /** Pauses between tries. */
  retry: { first_ms: number; most_ms: number };
  /** A session of this length resets the pauses. */
  stable_ms: number;
  /** Maximum time that a process which gives a link away reads on until its successor does. */
  handover_ms: number;
  /** Maximum time that a stopping process reads on. */
  stop_handover_ms: number;
  /** Interval of the checks for the successor. */
  look_ms: number;
  /** Time that it then reads on for messages in transit. */
  read_on_ms: number;
  /** Interval at which a refused link is retried, because its owner may have repaired it without our knowledge. */
  refused_ms: number;
}

export const TIMINGS: LinkTimings = {
  retry: { first_ms: 500, most_ms: 60_000 },
  stable_ms: 60_000,
  handover_ms: 20_000,
  stop_handover_ms: 8_000,
  look_ms: 100,
  read_on_ms: 1_000,
  refused_ms: 300_000,
};
