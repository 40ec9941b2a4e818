// The lists of a calendar as text, with a picker that puts lines in.
import './calendars.css'
import { CalendarOutlined } from '@ant-design/icons'
import { Button, Form, Input } from 'antd'
import type { Rule } from 'antd/es/form'
import type { Dayjs } from 'dayjs'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { parseDays, parseWindows, type LineFault, type Parsed } from './calendar'
import type { CalendarFields } from './calendarForm'
import { localZone } from '../../lib/time'
import { later } from '../../ui/later'

const LinePicker = later(() => import('./LinePicker'))

const FAULT: Record<LineFault['kind'], 'lineBad' | 'lineDate' | 'lineOrder' | 'lineLong'> = { bad: 'lineBad', date: 'lineDate', order: 'lineOrder', long: 'lineLong' }

function useLineRule(parse: (text: string) => Parsed<unknown>): Rule {
  const { t } = useTranslation()
  return {
    validator: (_, value: string | undefined) => {
      const { fault } = parse(value ?? '')
      if (!fault) return Promise.resolve()
      return Promise.reject(new Error(t(`calendars.${FAULT[fault.kind]}`, { line: fault.line, text: fault.text })))
    },
  }
}

export function DayLines({ name, rows }: { name: 'holidays' | 'makeUpDays'; rows: number }) {
  const { t } = useTranslation()
  const text = Form.useWatch<string | undefined>(name) ?? ''
  const rule = useLineRule(parseDays)
  const count = parseDays(text).items.length
  return (
    <section className="card">
      <Form.Item
        name={name}
        label={t(`calendars.${name}`)}
        rules={[rule]}
        validateTrigger="onBlur"
        extra={
          <>
            {t(`calendars.${name}Help`)} <span className="num">({t('calendars.days', { count })})</span>
          </>
        }
      >
        <Input.TextArea className="mono" rows={rows} spellCheck={false} placeholder={t(`calendars.${name}Example`)} />
      </Form.Item>
      <Insert name={name} label={t('calendars.addDays')} format="YYYY-MM-DD" joint=".." />
    </section>
  )
}

export function WindowLines() {
  const { t } = useTranslation()
  const zone = Form.useWatch<string | undefined>('windowZone') ?? localZone
  const text = Form.useWatch<string | undefined>('blackouts') ?? ''
  const rule = useLineRule((lines) => parseWindows(lines, zone))
  const count = parseWindows(text, zone).items.length
  return (
    <section className="card">
      <Form.Item
        name="blackouts"
        label={t('calendars.blackouts')}
        rules={[rule]}
        validateTrigger="onBlur"
        extra={
          <>
            {t('calendars.blackoutsHelp', { zone })} <span className="num">({t('calendars.windows', { count })})</span>
          </>
        }
      >
        <Input.TextArea className="mono" rows={4} spellCheck={false} placeholder={t('calendars.blackoutsExample')} />
      </Form.Item>
      <Insert name="blackouts" label={t('calendars.addWindow')} format="YYYY-MM-DD HH:mm" joint=" .. " withTime />
    </section>
  )
}

interface InsertProps {
  name: 'holidays' | 'makeUpDays' | 'blackouts'
  label: string
  format: string
  joint: string
  withTime?: boolean
}

function Insert({ name, label, format, joint, withTime = false }: InsertProps) {
  const { t } = useTranslation()
  const form = Form.useFormInstance<CalendarFields>()
  const [asked, setAsked] = useState(false)
  const [range, setRange] = useState<[Dayjs, Dayjs] | null>(null)
  const [title, setTitle] = useState('')
  const insert = () => {
    if (!range) return
    const [from, to] = range.map((one) => one.format(format)) as [string, string]
    const line = [from === to ? from : `${from}${joint}${to}`, title.trim()].filter(Boolean).join(' ')
    const text = (form.getFieldValue(name) as string).trimEnd()
    form.setFieldsValue({ [name]: text === '' ? line : `${text}\n${line}` })
    void form.validateFields([name]).catch(() => {})
    setRange(null)
    setTitle('')
  }
  // Three pickers on a page that most people fill in by typing: they come when one is asked for.
  if (!asked) {
    return (
      <Button className="insert-line" icon={<CalendarOutlined />} onClick={() => setAsked(true)}>
        {label}
      </Button>
    )
  }
  return (
    <div className="row insert-line">
      <LinePicker label={label} format={format} withTime={withTime} value={range} onChange={setRange} />
      <Input aria-label={`${label}: ${t('calendars.addName')}`} placeholder={t('calendars.addName')} value={title} maxLength={200} onChange={(event) => setTitle(event.target.value)} />
      <Button onClick={insert} disabled={!range} aria-label={label}>
        {t('calendars.insert')}
      </Button>
    </div>
  )
}
