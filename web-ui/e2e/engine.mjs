// What the engine plans with: calendars, scripts, backfills, limits, nodes.
import assert from 'node:assert/strict'
import { axe, settled, shot } from './browser.mjs'
import { choose, go, heading, inDays, jobName, made, page, says, session, test } from './world.mjs'

test('a calendar is written, imported into and kept in versions', async () => {
  await go('/calendars/new')
  await page.getByLabel('Name', { exact: true }).fill(`${jobName}-days`)
  const holidays = page.getByRole('textbox', { name: 'Holidays', exact: true })
  await holidays.fill('the day after tomorrow')
  await page.getByRole('button', { name: 'Create', exact: true }).click()
  await page.getByText('Line 1 is not understood').waitFor()
  await holidays.fill(`${inDays(2)}..${inDays(4)} Three days off`)
  await page.getByRole('button', { name: 'Create', exact: true }).click()
  await heading(`${jobName}-days`).waitFor()
  made.calendar = new URL(page.url()).pathname
  await page.getByRole('button', { name: 'Import iCal' }).click()
  const dialog = page.getByRole('dialog')
  const day = inDays(40).replaceAll('-', '')
  await dialog.getByLabel('Text of the file').fill(`BEGIN:VCALENDAR\nVERSION:2.0\nBEGIN:VEVENT\nUID:1\nDTSTART;VALUE=DATE:${day}\nSUMMARY:Founders' day\nEND:VEVENT\nEND:VCALENDAR\n`)
  await settled(page)
  await shot(page, 'calendar-import')
  assert.deepEqual(await axe(page), [])
  await dialog.getByRole('button', { name: 'Import iCal' }).click()
  await dialog.waitFor({ state: 'detached' })
  const versions = page.getByRole('region', { name: 'Versions' })
  await versions.getByText('Version 2').waitFor()
  await says(versions, /added Holidays \d{4}-\d\d-\d\d Founders' day/)
})

test('a job takes a calendar, the preview shows what it takes out, and the calendar stays', async () => {
  await go(`${made.job}/edit`)
  await choose('Calendars', `${jobName}-days`)
  await page.keyboard.press('Escape')
  await page.getByText('Calendars take out 3 of these.').waitFor()
  assert.equal(await page.locator('.fires li.taken-out', { hasText: 'Three days off' }).count(), 3)
  await shot(page, 'job-with-calendar')
  await page.getByRole('button', { name: 'Save' }).click()
  await page.waitForURL((url) => url.pathname === made.job)
  await go(made.calendar)
  await page.getByRole('link', { name: jobName, exact: true }).waitFor()
  await page.getByRole('button', { name: 'Delete' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText('cannot be deleted').waitFor()
  await settled(page)
  assert.deepEqual(await axe(page), [])
  await dialog.getByRole('button', { name: 'Close' }).last().click()
})

test('what agents may do is nothing until it is allowed; a script is written, changed, compared and restored', async () => {
  await go('/scripts')
  const policy = page.getByRole('region', { name: 'What agents may do' })
  await policy.getByText('nothing', { exact: true }).waitFor()
  await policy.getByRole('button', { name: 'Change' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('checkbox', { name: 'Shell', exact: true }).check()
  await settled(page)
  await shot(page, 'script-policy')
  assert.deepEqual(await axe(page), [])
  await dialog.getByRole('button', { name: 'Save' }).click()
  await dialog.waitFor({ state: 'detached' })
  await policy.getByText('Shell', { exact: true }).waitFor()

  await go('/scripts/new')
  await page.getByLabel('Name', { exact: true }).fill(`${jobName}-script`)
  await page.getByLabel('Content').fill('#!/bin/sh\necho one\n')
  await page.getByLabel('Note').fill('first')
  await page.getByRole('button', { name: 'Create', exact: true }).click()
  await heading(`${jobName}-script`).waitFor()
  made.script = new URL(page.url()).pathname
  await page.getByRole('link', { name: 'Edit' }).click()
  await page.getByLabel('Content').fill('#!/bin/sh\necho two\n')
  await page.getByRole('button', { name: 'Save' }).click()
  await page.waitForURL((url) => url.pathname === made.script)
  const revisions = page.getByRole('region', { name: 'Revisions' })
  await revisions.getByText('+ echo two').waitFor()
  await says(revisions, /− echo one/)
  await revisions.getByRole('button', { name: 'Restore' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Restore' }).click()
  await revisions.getByText('Revision 3', { exact: true }).waitFor()
  await page.getByRole('region', { name: 'Content' }).getByText('echo one').waitFor()
})

test('a save over somebody else’s script or calendar is told, keeps the draft, and theirs stays as a version', async () => {
  session.expect(/412.*\/(scripts|calendars)\//)
  const edits = [
    { path: made.script, label: 'Content', theirs: 'echo theirs', mine: 'echo mine', look: /Look at revision 4/, over: 'Save mine over it', list: 'Revisions', last: 'Revision 5' },
    { path: made.calendar, label: 'Description', theirs: 'by the other', mine: 'by me', look: /Look at version 3/, over: 'Save mine as the next version', list: 'Versions', last: 'Version 4' },
  ]
  for (const one of edits) {
    await go(`${one.path}/edit`)
    const other = await session.context.newPage()
    await other.goto(page.url())
    await other.getByLabel(one.label).fill(one.theirs)
    await other.getByRole('button', { name: 'Save' }).click()
    await other.waitForURL((url) => url.pathname === one.path)
    await other.close()
    await page.getByLabel(one.label).fill(one.mine)
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('link', { name: one.look }).waitFor()
    assert.equal(await page.getByLabel(one.label).inputValue(), one.mine)
    await settled(page)
    assert.deepEqual(await axe(page), [])
    await page.getByRole('button', { name: one.over }).click()
    await page.waitForURL((url) => url.pathname === one.path)
    const versions = page.getByRole('region', { name: one.list })
    await versions.getByText(one.last, { exact: true }).waitFor()
    await versions.getByText(one.mine).first().waitFor()
    await says(versions, new RegExp(`${one.theirs}[^]*${one.mine}`))
  }
})

test('a backfill says what it would do, writes its runs, and can be stopped', async () => {
  await go(`${made.job}/backfills`)
  await page.getByRole('button', { name: 'New backfill' }).click()
  const dialog = page.getByRole('dialog')
  for (const [label, day] of [['From', -4], ['Up to', -2]]) {
    await dialog.getByLabel(label).fill(`${inDays(day)} 00:00:00`)
    await page.keyboard.press('Enter')
  }
  await dialog.getByText('2 runs would be written').waitFor()
  await settled(page)
  await shot(page, 'backfill-new')
  assert.deepEqual(await axe(page), [])
  await dialog.getByRole('button', { name: 'Write 2 runs' }).click()
  const row = page.getByRole('row').filter({ hasText: 'fire times done with' })
  await row.getByRole('button', { name: 'Stop' }).click()
  await page.getByRole('dialog').getByText('No more runs are written.').waitFor()
  await settled(page)
  await page.getByRole('dialog').getByRole('button', { name: 'Stop' }).click()
  await row.getByText('Stopped').waitFor()
})

test('a limit is set and taken away', async () => {
  await go('/limits')
  const row = page.getByRole('row').nth(2)
  const set = async (max) => {
    await row.getByRole('button').click()
    await page.getByRole('dialog').getByLabel('At once, at most').fill(max)
    await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
    await page.getByRole('dialog').waitFor({ state: 'detached' })
  }
  await set('50')
  await row.getByText('/50').waitFor()
  await shot(page, 'limit-set')
  await set('')
  await row.getByText('no limit').waitFor()
})

test('a quota is set, and brought back to its default', async () => {
  await go('/limits')
  const row = page.getByRole('row').filter({ hasText: 'Executors that exist.' })
  const set = async (value) => {
    await row.getByRole('button').click()
    await page.getByRole('dialog').getByLabel('At most').fill(value)
    await settled(page)
    assert.deepEqual(await axe(page), [])
    await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
    await page.getByRole('dialog').waitFor({ state: 'detached' })
  }
  await set('77')
  await row.getByText('77', { exact: true }).waitFor()
  await shot(page, 'quota-set')
  await set('')
  await row.getByText('default').waitFor()
})

test('the cluster shows its node with all partitions', async () => {
  await go('/cluster')
  await says(page.getByRole('table', { name: 'Nodes' }), /answers you[\s\S]*Live[\s\S]*64/)
  assert.equal(await page.locator('.cell').count(), 64)
})
