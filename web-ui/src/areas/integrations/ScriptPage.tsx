// One script: its content, its versions with what each changed, and the jobs
// that use it.
import { DeleteOutlined, EditOutlined } from '@ant-design/icons'
import { useQuery } from '../../api/useQuery'
import { Link, useNavigate, useParams } from '@tanstack/react-router'
import { Input } from 'antd'
import { useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { refreshScripts, scriptApi, scriptQueries } from './scripts'
import { queryClient } from '../../api/queries'
import type { Script, ScriptVersion } from '../../api/types'
import { ActionButton } from '../../ui/ActionButton'
import { ByWhom } from '../../ui/ByWhom'
import { Changes } from '../../ui/Changes'
import { Fact } from '../../ui/Fact'
import { useCan, useShowError } from '../../ui/hooks'
import { JobLinks } from '../../ui/JobLinks'
import { LinkButton } from '../../ui/LinkButton'
import { message } from '../../ui/notices'
import { Page } from '../../ui/Page'
import { ScriptDiff } from './ScriptDiff'
import { ErrorState, PageSkeleton } from '../../ui/States'
import { useConfirm } from '../../ui/useConfirm'
import { useDanger } from '../../ui/useDanger'
import { Version, Versions } from '../../ui/Versions'
import { SCRIPT_LANGUAGES } from './scriptWords'

export function ScriptPage() {
  const { t } = useTranslation()
  const { scriptId } = useParams({ from: '/app/settings/integrations/scripts/$scriptId' })
  const script = useQuery(scriptQueries.script(scriptId))
  const jobs = useQuery(scriptQueries.scriptJobs(scriptId))
  const versions = useQuery({ ...scriptQueries.scriptVersions(scriptId, script.data?.version ?? 0), enabled: script.isSuccess })
  const canWrite = useCan('scripter')
  if (script.error && !script.data) return <ErrorState error={script.error} onRetry={() => void script.refetch()} />
  if (!script.data) return <PageSkeleton />
  const { data } = script
  const { spec } = data
  return (
    <Page title={data.name} crumbs={<Link to="/settings/integrations/scripts">{t('scripts.title')}</Link>} sub={spec.description} actions={canWrite && <Actions script={data} />}>
      <div className="stack">
        <section className="card">
          <dl className="facts">
            <Fact label={t('scripts.language')}>{SCRIPT_LANGUAGES[spec.language]}</Fact>
            <Fact label={t('scripts.version')}>
              <span className="num">{data.version}</span>
            </Fact>
            <Fact label={t('field.updated')}>
              <ByWhom who={data.updatedBy} at={data.updatedAt} />
            </Fact>
            <Fact label={t('scripts.digest')}>
              <span className="mono small">{data.status.sha256.slice(0, 16)}…</span>
            </Fact>
          </dl>
        </section>
        <div className="grid-2">
          <section className="card">
            <h2>{t('scripts.content')}</h2>
            <pre className="code-block" tabIndex={0} role="region" aria-label={t('scripts.content')}>
              {spec.content}
            </pre>
          </section>
          <JobLinks title={t('scripts.usedBy')} none={t('scripts.unused')} jobs={jobs} />
        </div>
        <Versions title={t('scripts.versions')} list={versions}>
          {({ items }) => items.map((one) => <OneVersion key={one.version} script={data} version={one} canRestore={canWrite && one.version !== data.version} />)}
        </Versions>
        <Changes kind="script" object={data.id} />
      </div>
    </Page>
  )
}

function OneVersion({ script, version, canRestore }: { script: Script; version: ScriptVersion; canRestore: boolean }) {
  const { t } = useTranslation()
  const restore = useRestore(script)
  // The difference is asked for when somebody wants to see it.
  const [open, setOpen] = useState(version.version === script.version)
  const n = version.version
  const action = canRestore && (
    <ActionButton size="small" onClick={() => restore(version)}>
      {t('scripts.restore')}
    </ActionButton>
  )
  return (
    <Version title={t('scripts.versionN', { n })} who={version.createdBy} at={version.createdAt} action={action}>
      {version.spec.note && <p className="changes">{version.spec.note}</p>}
      {n === 1 ? (
        <p className="muted changes">{t('scripts.first')}</p>
      ) : (
        <details className="changes" open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
          <summary>{t('scripts.changesFrom', { n: n - 1 })}</summary>
          {open && <ScriptDiff id={script.id} from={n - 1} to={n} />}
        </details>
      )}
    </Version>
  )
}

function useRestore(script: Script): (version: ScriptVersion) => void {
  const { t } = useTranslation()
  const confirm = useConfirm()
  const showError = useShowError()
  const note = useRef('')
  return ({ version, spec }) => {
    note.current = ''
    confirm({
      title: t('scripts.restoreTitle', { n: version }),
      content: (
        <div className="stack">
          <p>{t('scripts.restoreHelp')}</p>
          <Input aria-label={t('scripts.note')} placeholder={t('scripts.noteHelp')} maxLength={1024} onChange={(event) => (note.current = event.target.value)} />
        </div>
      ),
      okText: t('scripts.restore'),
      cancelText: t('action.cancel'),
      onOk: async () => {
        try {
          const next = await scriptApi.updateScript(script.id, script.version, { name: script.name, labels: script.labels, spec: { ...spec, note: note.current } })
          message.success(t('scripts.saved', { name: next.name, n: next.version }))
          queryClient.setQueryData(scriptQueries.script(script.id).queryKey, next)
          refreshScripts()
        } catch (err) {
          showError(err)
        }
      },
    })
  }
}

function Actions({ script }: { script: Script }) {
  const { t } = useTranslation()
  const danger = useDanger()
  const navigate = useNavigate()
  const { name } = script
  const remove = () =>
    danger({
      title: t('scripts.deleteTitle', { name }),
      content: t('scripts.deleteHelp'),
      action: t('scripts.delete'),
      work: async () => {
        await scriptApi.deleteScript(script.id)
        await navigate({ to: '/settings/integrations/scripts' })
        queryClient.removeQueries({ queryKey: ['script', script.id] })
      },
      done: t('scripts.deleted', { name }),
      after: refreshScripts,
    })
  return (
    <>
      <LinkButton to="/settings/integrations/scripts/$scriptId/edit" params={{ scriptId: script.id }} icon={<EditOutlined />}>
        {t('action.edit')}
      </LinkButton>
      <ActionButton danger icon={<DeleteOutlined />} onClick={remove}>
        {t('scripts.delete')}
      </ActionButton>
    </>
  )
}
