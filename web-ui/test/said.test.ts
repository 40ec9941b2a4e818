// Sentences of the server in rows, in both languages.
import i18next from 'i18next'
import { beforeAll, describe, expect, it } from 'vitest'
import { en } from '../src/i18n/en'
import { zh } from '../src/i18n/zh'
import { said, saidIn } from '../src/lib/said'

beforeAll(() => i18next.init({ lng: 'zh', resources: { en: { translation: en }, zh: { translation: zh } }, interpolation: { escapeValue: false } }))

const texts: [string, string][] = [
  ['timed out', '超时'],
  ['killed: cancelled by admin: smoke test', '被终止：被 admin 取消：smoke test'],
  ['cancelled by its caller anna', '被其调用方 anna 取消'],
  ['3 of 5 shards succeeded, 1 timed_out, 1 lost', '5 个分片中 3 个成功，1 个超时，1 个失联'],
  ['maintenance of the executor: new disks', '执行器维护：new disks'],
  ['the tenant may have 20 runs at once', '该租户同时最多可有 20 个执行'],
  ['bob, because calendar days-off changed', 'bob（因为日历 days-off 已改变）'],
  ['passed while nobody could plan it, and the run of 2026-11-30T00:00:00.000Z stands for it', '触发时刻已过：当时没有节点能计划它，由 2026-11-30T00:00:00.000Z 的执行代替'],
  ['snoozed for 1m5s', '推迟 1m5s'],
  ['an administrator has denied this instance; a new process has to be started', '管理员已拒绝此实例；须启动新的进程'],
]

describe('saidIn', () => {
  it('translates the row that a Chinese sentence quotes or ends with', () => {
    const t = i18next.getFixedT('zh')
    expect(saidIn('任务“a”最近一次运行的结果为超时：timed out。', t)).toBe('任务“a”最近一次运行的结果为超时：超时。')
    expect(saidIn('“executor is stopping”。经过1 次尝试后以“失败”结束：处理器返回了错误。', t)).toBe('“执行器正在停止”。经过1 次尝试后以“失败”结束：处理器返回了错误。')
  })
})

describe('said', () => {
  it.each(texts)('translates %j', (text, chinese) => expect(said(text, i18next.getFixedT('zh'))).toBe(chinese))
  it.each(texts)('leaves the words of %j in English', (text) => expect(said(text, i18next.getFixedT('en'))).toBe(text.replace('timed_out', 'timed out')))
  it.each(['no route to db', 'it timed out: the peer', 'the pump stopped', ''])('leaves %j, the words of a handler', (text) => expect(said(text, i18next.getFixedT('zh'))).toBe(text))
})
