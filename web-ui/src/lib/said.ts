// Sentences that the server or an executor writes into rows, in English. A row outlives the
// language of the person who reads it, so the pages translate them.
import i18next, { type TFunction } from 'i18next'
import type { Texts } from '../i18n/en'

const AFTER = '(?:: (?<rest>[^]+))?$'

/** Each may be followed by a colon and what a person, or the sentence below it, adds. */
const SENTENCES: [RegExp, Exclude<keyof Texts['said'], 'of' | 'after' | 'shardState'>][] = (
  [
    ['killed', 'killed'],
    ['timed out', 'timedOut'],
    ['lease lost', 'leaseLost'],
    ['executor is stopping', 'stopping'],
    ['its process stood still', 'stalled'],
    ['the process stood still until it was too late to start the handler', 'tooLate'],
    ['a newer run replaces it', 'replaced'],
    ['cancelled by its caller (?<who>.+?)', 'cancelledByCaller'],
    ['cancelled by (?<who>.+?)', 'cancelledBy'],
    ['snoozed for (?<time>[\\w.µ]+)', 'snoozed'],
    ['its instance went silent and its lease ran out', 'silent'],
    ['its lease ran out', 'leaseRanOut'],
    ['stopped', 'stopped'],
    ['superseded by a new boot', 'rebooted'],
    ['denied by an administrator', 'denied'],
    ['an administrator has denied this (?<what>\\w+); a new process has to be started', 'deniedThis'],
    ['the instance that the shard was for has gone', 'shardGone'],
    ['(?<done>\\d+) of (?<total>\\d+) shards succeeded(?<others>(?:, \\d+ [a-z_]+)*)', 'shards'],
    ['the (?<what>tenant|executor) may have (?<max>\\d+) runs at once', 'limit'],
    ['maintenance of the (?<what>\\w+)', 'maintenance'],
    ['(?<who>.+), because calendar (?<name>.+) changed', 'byCalendar'],
    ['(?<runs>\\d+) runs wait for earlier ones, as many as may: further fires are discarded', 'discards'],
    ['mail is not configured on this server \\(mail-host\\)', 'noMail'],
    ['passed while (?<passed>.+), and (?<then>.+)', 'passed'],
    ['the host leads to a network that may not be reached \\(--(?<flag>[a-z-]+)\\)', 'hostBarred'],
    ['nobody could plan it', 'unplanned'],
    ['nobody could start its run', 'unstarted'],
    ['planning was held back because too many runs were waiting', 'heldBack'],
    ['the run of (?<at>\\S+) stands for it', 'coalesced'],
    ['is older than what the misfire policy makes up', 'tooOld'],
    ['more fire times passed than the misfire policy makes up', 'tooMany'],
    ['the misfire policy skips such fire times', 'skipped'],
    ['Calls addresses and publishes messages\\. The admin nodes are its instances\\.', 'builtIn'],
  ] as const
).map(([sentence, key]) => [new RegExp(`^${sentence}${AFTER}`), key])

/** The text in the person's language; a text of a handler or a person as it is. */
export function said(text = '', t: TFunction): string {
  for (const [pattern, key] of SENTENCES) {
    const found = pattern.exec(text)
    if (!found) continue
    const { rest, others, what, passed, then, ...given } = found.groups ?? {}
    const sentence = t(`said.${key}` as 'said.killed', {
      ...given,
      ...(others !== undefined && { others: shardStates(others, t) }),
      ...(what !== undefined && { what: kindOf(what, t) }),
      ...(passed !== undefined && then !== undefined && { passed: said(passed, t), what: said(then, t) }),
    })
    return rest ? t('said.after', { said: sentence, rest: said(rest, t) }) : sentence
  }
  return text
}

/** A Chinese sentence of the server, which may quote a row or end with its text. */
export function saidIn(sentence: string, t: TFunction): string {
  return sentence.replace(/(?<=“)[^”]+(?=”)|(?<=：)[^：]+(?=。$)/g, (quoted) => said(quoted, t))
}

/** ", 1 failed, 2 timed_out" with the names that the pages have for states. */
const shardStates = (others: string, t: TFunction) =>
  [...others.matchAll(/, (\d+) ([a-z_]+)/g)].map(([, count, state]) => t('said.shardState', { n: count, state: named(`runs.state.${state}`, state ?? '', t) })).join('')

const kindOf = (what: string, t: TFunction) => named(`said.of.${what}`, what, t)

const named = (key: string, otherwise: string, t: TFunction) => (i18next.exists(key) ? t(key as 'runs.state.failed').toLowerCase() : otherwise)
