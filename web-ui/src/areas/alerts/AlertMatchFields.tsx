// The fields of what a rule or a silence matches.
import { useQuery } from '../../api/useQuery'
import { Form, Input, Select } from 'antd'
import { useState, type ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import { queries } from '../../api/queries'
import type { AlertKind, AlertRuleMatch, Id } from '../../api/types'
import { isSelector } from '../../lib/selector'
import { ALERT_KINDS, ExecutorName, JobName, useKindText } from './AlertWords'
import { useClearable } from '../../ui/clearable'
import { useDebounced } from '../../ui/hooks'

const SEARCH_DELAY_MS = 250
const MOST = 100

interface Props {
  id?: string
  value?: string[]
  onChange?: (words: string[]) => void
  placeholder: string
  /** What the field holds. */
  by: 'id' | 'name'
}

function Many({ found, loading, onSearch, name, by, ...props }: Props & { found: { id: Id; name: string }[]; loading: boolean; onSearch: (text: string) => void; name: (id: Id) => ReactNode }) {
  const clearable = useClearable()
  return (
    <Select
      {...props}
      mode="multiple"
      maxCount={MOST}
      allowClear={clearable}
      showSearch={{ filterOption: false, onSearch }}
      loading={loading}
      options={found.map((one) => ({ value: one[by], label: one.name }))}
      labelRender={({ value }) => (by === 'id' ? name(String(value)) : String(value))}
    />
  )
}

/** Searches at the server, so it works with thousands. */
function JobsSelect(props: Props) {
  const [typed, setTyped] = useState('')
  const found = useQuery({ ...queries.jobs({ q: useDebounced(typed, SEARCH_DELAY_MS) || undefined, limit: 50 }), refetchInterval: false })
  return <Many {...props} found={found.data?.items ?? []} loading={found.isFetching} onSearch={setTyped} name={(id) => <JobName id={id} />} />
}

function ExecutorsSelect(props: Props) {
  const [typed, setTyped] = useState('')
  const found = useQuery({ ...queries.executors({ q: useDebounced(typed, SEARCH_DELAY_MS) || undefined, limit: 100 }), refetchInterval: false })
  return <Many {...props} found={found.data?.items ?? []} loading={found.isFetching} onSearch={setTyped} name={(id) => <ExecutorName id={id} />} />
}

/** by: name for rules, and id for silences. kinds: false for rules that look by themselves, which are of one kind. of: those that can be chosen. */
export function AlertMatchFields({ by, kinds = true, of = ALERT_KINDS, kindsHelp }: { by: 'id' | 'name'; kinds?: boolean; of?: AlertKind[]; kindsHelp?: string }) {
  const { t } = useTranslation()
  const clearable = useClearable()
  const kind = useKindText()
  return (
    <>
      {kinds && (
        <Form.Item name={['match', 'kinds']} label={t('alerts.silence.kinds')} extra={kindsHelp}>
          <Select mode="multiple" allowClear={clearable} placeholder={t('alerts.silence.allKinds')} options={of.map((value) => ({ value, label: kind(value) }))} />
        </Form.Item>
      )}
      <Form.Item name={['match', by === 'id' ? 'executorIds' : 'executors']} label={t('alerts.silence.executors')}>
        <ExecutorsSelect by={by} placeholder={t('alerts.silence.allExecutors')} />
      </Form.Item>
      <Form.Item name={['match', by === 'id' ? 'jobIds' : 'jobs']} label={t('alerts.silence.jobs')}>
        <JobsSelect by={by} placeholder={t('alerts.silence.allJobs')} />
      </Form.Item>
      <Form.Item
        name={['match', 'labels']}
        label={t('alerts.silence.labels')}
        extra={t('alerts.silence.labelsHelp')}
        rules={[{ validator: async (_, text: string | undefined) => (isSelector(text ?? '') ? undefined : Promise.reject(new Error(t('alerts.silence.labelsRule')))) }]}
      >
        <Input className="mono" maxLength={1024} autoComplete="off" spellCheck={false} />
      </Form.Item>
    </>
  )
}

/** Without what is empty; nothing at all: everything. */
export function matchOf(fields: AlertRuleMatch | undefined): AlertRuleMatch {
  return {
    ...(fields?.kinds?.length ? { kinds: fields.kinds } : {}),
    ...(fields?.executors?.length ? { executors: fields.executors } : {}),
    ...(fields?.jobs?.length ? { jobs: fields.jobs } : {}),
    ...(fields?.executorIds?.length ? { executorIds: fields.executorIds } : {}),
    ...(fields?.jobIds?.length ? { jobIds: fields.jobIds } : {}),
    ...(fields?.labels?.trim() ? { labels: fields.labels.trim() } : {}),
  }
}
