// How long something lasts: a span from now, or until a time.
import { Form, Select } from 'antd'
import dayjs, { type Dayjs } from 'dayjs'
import { lazy, Suspense } from 'react'
import { useTranslation } from 'react-i18next'
import { loadChunk } from '../lib/chunk'
import { serverNow } from '../lib/connection'
import { humanDuration } from '../lib/duration'
import { localZone } from '../lib/time'

const WallPicker = lazy(() => loadChunk(() => import('./WallPicker')))

const MINUTE_MS = 60_000
const SPANS = [30, 60, 120, 240, 480, 1_440, 10_080].map((minutes) => minutes * MINUTE_MS)

export interface EndFieldsValue {
  /** Milliseconds from now; at: until a time; open: without end. */
  lasts: number | 'at' | 'open'
  until?: Dayjs | null
}

export const HOUR_MS = 60 * MINUTE_MS

/** open: the words for "without end", where that can be. */
export function EndFields({ open }: { open?: string }) {
  const { t } = useTranslation()
  const lasts: EndFieldsValue['lasts'] | undefined = Form.useWatch('lasts')
  return (
    <>
      <Form.Item name="lasts" label={t('alerts.silence.lasts')}>
        <Select
          options={[
            ...(open ? [{ value: 'open' as const, label: open }] : []),
            ...SPANS.map((value) => ({ value, label: humanDuration(value, t) })),
            { value: 'at' as const, label: t('alerts.silence.at') },
          ]}
        />
      </Form.Item>
      {lasts === 'at' && (
        <Suspense>
          <Form.Item name="until" label={`${t('alerts.silence.until')} (${localZone})`} rules={[{ required: true, message: t('field.required') }]}>
            <WallPicker />
          </Form.Item>
        </Suspense>
      )}
    </>
  )
}

/** The instant that was chosen; undefined: without end. */
export function endOf({ lasts, until }: EndFieldsValue): string | undefined {
  if (lasts === 'open') return undefined
  return (lasts === 'at' ? (until ?? dayjs(serverNow())) : dayjs(serverNow() + lasts)).toISOString()
}
