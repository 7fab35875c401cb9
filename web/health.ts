import { byId, element, pill } from './dom';

interface Health {
  data: {
    status: string;
    version: string;
    services: Record<string, { status: string; latency_ms: number }>;
    websocket: { sessions: number; channels: number };
  };
}

const EVERY_MS = 5_000;
const LOOKS: Record<string, 'good' | 'waiting' | 'bad'> = { healthy: 'good', degraded: 'waiting' };
const lookOf = (status: string) => LOOKS[status] ?? 'bad';

/** Polls the health of the service, one request at a time, and shows it. */
export async function watchHealth(): Promise<never> {
  for (;;) {
    try {
      const response = await fetch('/v1/health', { credentials: 'omit', signal: AbortSignal.timeout(EVERY_MS) });
      show((await response.json()) as Health);
    } catch (error) {
      console.warn('health is not to be had:', error);
      pill(byId('health'), 'away', 'bad');
    }
    await new Promise((resume) => setTimeout(resume, EVERY_MS));
  }
}

function show({ data: { status, version, services, websocket } }: Health): void {
  pill(byId('health'), status, lookOf(status));
  const rows = Object.entries(services).map(([name, service]) => {
    const dot = element('span', `dot ${lookOf(service.status)}`);
    const told = element('span', 'quiet', `${service.status}, ${service.latency_ms.toFixed(1)} ms`);
    return element('li', '', dot, name, told);
  });
  byId('services').replaceChildren(...rows);
  byId('sockets').textContent = `${websocket.sessions} sockets on ${websocket.channels} channels, version ${version}`;
}
