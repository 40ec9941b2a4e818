import { Link } from '@tanstack/react-router'
import { Button } from 'antd'
import { useTranslation } from 'react-i18next'
import { isFinal } from '../../api/queries'
import type { Timer } from '../../api/types'
import { timerWhy } from '../../lib/why'
import { ActionButton } from '../../ui/ActionButton'
import { Dialog } from '../../ui/Dialog'
import { Fact } from '../../ui/Fact'
import { JsonView } from '../../ui/input/JsonView'
import { TimerStateChip } from '../../ui/StateChip'
import { AbsoluteTime } from '../../ui/TimeText'
import { neverFired } from './NotFired'

/** Who has set it, for when, its run, and why it did not run. */
export default function TimerDialog({ timer, onCancel, onClose }: { timer: Timer; onCancel: (timer: Timer, after?: () => void) => void; onClose: () => void }) {
  const { t } = useTranslation()
  const why = timerWhy(timer, t)
  return (
    <Dialog
      title={timer.key}
      width={640}
      onCancel={onClose}
      footer={[
        !isFinal(timer.state) && (
          <ActionButton key="cancel" danger onClick={() => onCancel(timer, onClose)}>
            {t('timers.cancel')}
          </ActionButton>
        ),
        <Button key="close" onClick={onClose}>
          {t('action.close')}
        </Button>,
      ]}
    >
      <dl className="facts">
        <Fact label={t('field.state')}>
          <TimerStateChip state={timer.state} />
        </Fact>
        <Fact label={t('timers.handler')}>
          <span className="mono">{`${timer.executor}/${timer.handler}`}</span>
        </Fact>
        <Fact label={neverFired(timer) ? t('timers.wasToFire') : isFinal(timer.state) ? t('runs.list.fireAt') : t('timers.firesAt')}>
          <AbsoluteTime at={timer.fireAt} ms />
        </Fact>
        <Fact label={t('timers.setAt')}>
          <AbsoluteTime at={timer.createdAt} ms />
        </Fact>
        <Fact label={t('timers.setBy')}>{timer.createdBy}</Fact>
        <Fact label={t('timers.run')}>
          {timer.run ? (
            <Link to="/runs/$runId" params={{ runId: timer.run }} className="mono">
              {timer.run}
            </Link>
          ) : (
            t('timers.noRun')
          )}
        </Fact>
        {timer.labels.length > 0 && <Fact label={t('timers.labels')}>{timer.labels.join(', ')}</Fact>}
        {timer.note && <Fact label={t('timers.note')}>{timer.note}</Fact>}
        {why && <Fact label={t('timers.why')}>{why}</Fact>}
      </dl>
      <div className="above-3">
        <div className="muted small">{t('timers.input')}</div>
        <JsonView value={timer.input} label={t('timers.input')} empty={t('timers.noInput')} />
      </div>
    </Dialog>
  )
}
