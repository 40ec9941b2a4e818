// Two people edited one job: field by field, mine or theirs. Taking over only
// fills the form on top of the stored revision; nothing is written until the
// person saves again.
import { Button, Radio } from 'antd'
import { useMemo, useState } from 'react'
import { useTranslation } from 'react-i18next'
import type { Job, JobWrite } from '../../../api/types'
import { conflicts, merge, type Choice } from '../../../lib/diff'
import { writeOf } from './jobForm'
import { settingText } from '../jobWords'
import { said } from '../../../lib/said'
import { Dialog } from '../../../ui/Dialog'
import { SettingName } from '../change/FieldDiffTable'
import { RelativeTime } from '../../../ui/TimeText'

interface Props {
  base: JobWrite
  mine: JobWrite
  current: Job
  onApply: (merged: JobWrite) => void
  onCancel: () => void
}

// A secret is written only and never comes back, so it cannot be compared.
const SECRET = 'alert.webhookSecret'

export default function ConflictDialog({ base, mine, current, onApply, onCancel }: Props) {
  const { t } = useTranslation()
  const list = useMemo(() => conflicts(base, mine, writeOf(current)).filter((one) => one.path !== SECRET), [base, mine, current])
  const [chosen, setChosen] = useState<Record<string, Choice>>({})
  const choices: Record<string, Choice> = {}
  for (const one of list) {
    const choice = chosen[one.path] ?? one.suggested
    if (choice) choices[one.path] = choice
  }
  const undecided = list.filter((one) => !choices[one.path]).length
  return (
    <Dialog
      width={860}
      title={t('jobs.conflict.title')}
      onCancel={onCancel}
      footer={
        <div className="row end">
          {undecided > 0 && <span className="st-timeout">{t('jobs.conflict.undecided', { count: undecided })}</span>}
          <Button onClick={onCancel}>{t('action.cancel')}</Button>
          <Button type="primary" disabled={undecided > 0} onClick={() => onApply(merge(mine, list, choices))}>
            {t('jobs.conflict.apply')}
          </Button>
        </div>
      }
    >
      <p className="below-2">
        {t('jobs.conflict.help', { n: current.revision, who: said(current.updatedBy, t) })} <RelativeTime at={current.updatedAt} />
      </p>
      {list.length === 0 ? (
        <p>{t('jobs.conflict.noneDiffer')}</p>
      ) : (
        <div className="table-wrap">
          <table className="table diff" role="table" aria-label={t('jobs.conflict.title')}>
            <thead role="rowgroup">
              <tr role="row">
                {(['field', 'mine', 'theirs'] as const).map((key) => (
                  <th key={key} role="columnheader" scope="col">
                    {t(`jobs.conflict.${key}`)}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody role="rowgroup">
              {list.map((one) => (
                <tr key={one.path} role="row">
                  <td role="cell" className="card-title">
                    <SettingName path={one.path} />
                    <div className="muted small">{t('jobs.conflict.was', { value: settingText(one.path, one.base, t) })}</div>
                  </td>
                  {(['mine', 'theirs'] as const).map((side) => (
                    <td key={side} role="cell" data-label={t(`jobs.conflict.${side}`)}>
                      <Radio
                        checked={choices[one.path] === side}
                        onChange={() => setChosen((before) => ({ ...before, [one.path]: side }))}
                        aria-label={`${t('jobs.conflict.choose', { field: one.path })}: ${t(`jobs.conflict.${side}`)}`}
                      >
                        {settingText(one.path, one[side], t)}
                      </Radio>
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Dialog>
  )
}
