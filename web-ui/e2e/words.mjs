// What a page says, without the data of the tenant, and what of it is not in the language of the page.

/** Fields of answers in which the server writes sentences of its own: they are not data. */
const SAID = new Set(['en', 'zh', 'error', 'message', 'detail', 'lastError', 'goneReason', 'updatedBy', 'by', 'reason', 'title', 'hint'])
/** Errors and notes of the sample shop, which stand in such fields. */
const OF_THE_SHOP = [/the carrier's system answers 429: more than 60 questions a minute/g, /sftp\.bank\.example: .*? known_hosts/g, /order \d+ was cancelled/g, /sample data: it ends here/g, /smoke test/g, /\d+ of \d+ orders/g]
/** Names of products, formats and units; they are the same in both languages. */
const NAMES = /\b(Carillon|carillon agent|script|Cron|Quartz|API|SDK|UTC|Shell|PowerShell|Python|Node\.js|PHP|Webhook|Slack|Microsoft Teams|Telegram|PagerDuty|Opsgenie|NATS JetStream|RabbitMQ|Kafka|HTTP|HTTPS|TLS|HTML|PEM|JSON|YAML|CSV|CLI|curl|iCal|Bearer|Ctrl K|GMT|vm|ms|min|host|port|https?)\b/g
const EXAMPLE = /\w+=\w+, tier in \(gold, silver\), !\w+/
const CJK = /[\u3000-\u303f\u3400-\u9fff\uff00-\uffef]/
const TWO_WORDS = /[A-Za-z][a-z’']+[ ,:]+[A-Za-z][a-z’']+/
const WORD = /[A-Za-z]{3,}/

/** Collects the strings of the answers that a page gets. */
export function dataOf(page) {
  const data = new Set()
  const keep = (value, key) => {
    if (Array.isArray(value)) for (const one of value) keep(one, key)
    else if (value && typeof value === 'object') {
      for (const [name, one] of Object.entries(value)) {
        if (key === 'labels' || key === 'headers') data.add(name)
        keep(one, name)
      }
    } else if (typeof value === 'string' && value.length > 2 && !SAID.has(key)) {
      for (const line of value.split('\n')) data.add(line.trim())
      // "Berlin" of "Europe/Berlin".
      if (key === 'zone') data.add(value.split('/').at(-1).replaceAll('_', ' '))
    }
  }
  page.on('response', async (response) => {
    if (!response.url().includes('/api/v1/')) return
    const body = await response.json().catch(() => undefined) // no JSON, or the page has gone
    keep(body, '')
  })
  return data
}

/** The texts that a person reads or hears. Code, logs and icons are none. */
const texts = () => {
  const CODE = 'script, style, code, pre, kbd, samp, .mono, .log-line, .cm-editor, [aria-hidden=true], [lang]:not(html)'
  const found = new Set([document.title])
  const seen = (el) => el.checkVisibility() && !el.closest(CODE)
  const nodes = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  for (let node; (node = nodes.nextNode()); ) if (node.data.trim() && seen(node.parentElement)) found.add(node.data.trim())
  for (const name of ['aria-label', 'aria-description', 'aria-valuetext', 'aria-roledescription', 'title', 'placeholder', 'alt']) {
    for (const el of document.querySelectorAll(`[${name}]`)) if (el.getAttribute(name).trim() && seen(el)) found.add(el.getAttribute(name).trim())
  }
  return [...found]
}

/** Texts of the page in another language than lang, "en" or "zh". */
export async function foreign(page, lang, data) {
  const known = [...data].sort((a, b) => b.length - a.length)
  const bad = []
  for (const text of await page.evaluate(texts)) {
    if (lang === 'en' ? !CJK.test(text) : !WORD.test(text)) continue
    let rest = text
    for (const one of [...OF_THE_SHOP, EXAMPLE]) rest = rest.replace(one, '·')
    for (const one of known) if (rest.includes(one)) rest = rest.replace(new RegExp(`(?<![A-Za-z])${one.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}(?![A-Za-z])`, 'g'), '·')
    rest = rest.replace(NAMES, '·')
    if (lang === 'en' ? CJK.test(rest) : TWO_WORDS.test(rest) || (WORD.test(rest) && !CJK.test(rest))) bad.push(text)
  }
  return bad
}
