// Writing a script: each save is a version with its author and a note.
import { useQuery } from '../../api/useQuery'
import { Link, useNavigate, useParams } from '@tanstack/react-router'
import { Alert, Form, Input, Select } from 'antd'
import { useTranslation } from 'react-i18next'
import { refreshScripts, scriptApi, scriptQueries } from './scripts'
import { queryClient, readOnce } from '../../api/queries'
import type { Script, ScriptLanguage } from '../../api/types'
import { EditPage, FormFoot } from '../../ui/EditPage'
import { LinkButton } from '../../ui/LinkButton'
import { Overwrite } from '../../ui/Overwrite'
import { Page } from '../../ui/Page'
import { useVersionedForm } from '../../ui/useVersionedForm'
import { languageOptions } from './scriptWords'

const MAX_BYTES = 64 << 10

export function ScriptNewPage() {
  const { t } = useTranslation()
  return (
    <Page title={t('scripts.createTitle')} crumbs={<Link to="/settings/integrations/scripts">{t('scripts.title')}</Link>}>
      <ScriptForm />
    </Page>
  )
}

export function ScriptEditPage() {
  const { t } = useTranslation()
  const { scriptId } = useParams({ from: '/app/settings/integrations/scripts/$scriptId/edit' })
  return (
    <EditPage
      stored={useQuery(readOnce(scriptQueries.script(scriptId)))}
      title={({ name }) => t('scripts.editTitle', { name })}
      crumbs={({ name }) => (
        <>
          <Link to="/settings/integrations/scripts">{t('scripts.title')}</Link> ›{' '}
          <Link to="/settings/integrations/scripts/$scriptId" params={{ scriptId }}>
            {name}
          </Link>
        </>
      )}
    >
      {(script) => <ScriptForm key={script.version} stored={script} />}
    </EditPage>
  )
}

interface Fields {
  name: string
  language: ScriptLanguage
  description: string
  content: string
  note: string
}

function ScriptForm({ stored }: { stored?: Script }) {
  const { t } = useTranslation()
  const navigate = useNavigate()
  const policy = useQuery(scriptQueries.scriptPolicy())
  const { form, props, busy, theirs, save } = useVersionedForm<Script, Fields>({
    stored,
    initial: () => ({ name: stored?.name ?? '', language: 'shell', description: '', content: '', ...stored?.spec, note: '' }),
    write: ({ name, ...spec }, version) => {
      const body = { name, labels: stored?.labels, spec }
      return stored ? scriptApi.updateScript(stored.id, version, body) : scriptApi.createScript(body)
    },
    read: scriptApi.script,
    said: ({ version, name }) => t('scripts.saved', { name, n: version }),
    place: ([field = '']) => [field],
    done: (saved) => {
      queryClient.setQueryData(scriptQueries.script(saved.id).queryKey, saved)
      refreshScripts()
      void navigate({ to: '/settings/integrations/scripts/$scriptId', params: { scriptId: saved.id } })
    },
  })
  const language = Form.useWatch('language', form) ?? stored?.spec.language ?? 'shell'
  return (
    <Form {...props} name="script">
      <div className="stack">
        {policy.data && !policy.data.languages.includes(language) && <Alert type="warning" showIcon title={t('scripts.offFor')} description={t('scripts.policyAsk')} />}
        {theirs && (
          <Overwrite
            title={t('scripts.conflictTitle')}
            help={t('scripts.conflictHelp', { n: theirs.version })}
            look={
              <Link to="/settings/integrations/scripts/$scriptId" params={{ scriptId: theirs.id }} target="_blank" rel="noreferrer">
                {t('scripts.conflictLook', { n: theirs.version })}
              </Link>
            }
            action={t('scripts.conflictOver')}
            busy={busy}
            onAction={() => void save(theirs.version)}
          />
        )}
        <section className="card form-fields">
          <Form.Item name="name" label={t('scripts.name')} rules={[{ required: true, whitespace: true, message: t('field.required') }]}>
            <Input maxLength={128} autoComplete="off" spellCheck={false} />
          </Form.Item>
          <Form.Item name="language" label={t('scripts.language')}>
            <Select disabled={Boolean(stored)} options={languageOptions} />
          </Form.Item>
          <Form.Item className="wide" name="description" label={t('scripts.description')}>
            <Input.TextArea maxLength={2000} autoSize={{ minRows: 1, maxRows: 5 }} />
          </Form.Item>
          <Form.Item
            className="wide"
            name="content"
            label={t('scripts.content')}
            rules={[
              { required: true, message: t('field.required') },
              { validator: (_, text: string) => (new TextEncoder().encode(text ?? '').length > MAX_BYTES ? Promise.reject(new Error(t('scripts.tooLong'))) : Promise.resolve()) },
            ]}
          >
            <Input.TextArea className="mono" autoSize={{ minRows: 14, maxRows: 40 }} spellCheck={false} autoComplete="off" />
          </Form.Item>
          <Form.Item className="wide" name="note" label={t('scripts.note')} extra={t('scripts.noteHelp')}>
            <Input maxLength={1024} autoComplete="off" />
          </Form.Item>
        </section>
      </div>
      <FormFoot
        isNew={!stored}
        busy={busy}
        cancel={
          stored ? (
            <LinkButton to="/settings/integrations/scripts/$scriptId" params={{ scriptId: stored.id }}>
              {t('action.cancel')}
            </LinkButton>
          ) : (
            <LinkButton to="/settings/integrations/scripts">{t('action.cancel')}</LinkButton>
          )
        }
      >
        {stored && <span className="muted small">{t('scripts.saveHelp')}</span>}
      </FormFoot>
    </Form>
  )
}
