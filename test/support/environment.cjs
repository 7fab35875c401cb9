const { TestEnvironment } = require('jest-environment-node');
const { appendFileSync } = require('node:fs');
const { relative } = require('node:path');

const shown = (times) => times.map((one) => one.toFixed(1)).join(', ');

/**
 * Node's environment, which reports how slow the machine was where a test multiplied a limit with it (`slowness()` of
 * patience.ts): in the message of a failure, and for each file in what `.ci/run` collects.
 */
module.exports = class Environment extends TestEnvironment {
  constructor(config, context) {
    super(config, context);
    this.file = relative(config.globalConfig.rootDir, context.testPath);
    this.all = [];
  }

  handleTestEvent({ name, error }) {
    const measured = this.global.lumio_slowness ?? [];
    if (name === 'test_fn_failure' && measured.length > 0 && error?.stack !== undefined)
      error.stack = `slowness of the machine, measured: ${shown(measured)} (limits count at most 4)\n${error.stack}`;
    if (name !== 'test_done') return;
    this.all.push(...measured);
    this.global.lumio_slowness = [];
  }

  async teardown() {
    const file = process.env.CI_RESULTS_FILE;
    if (file && this.all.length > 0) {
      const slowness = Math.round(Math.max(...this.all) * 10) / 10;
      const line = { stage: process.env.CI_STAGE ?? '', measured_in: this.file, slowness };
      appendFileSync(file, `${JSON.stringify(line)}\n`);
    }
    await super.teardown();
  }
};
