import 'antd/dist/reset.css'
import './tokens.css'
import './base.css'
import './ui/page.css'
import './ui/states.css'
import './ui/table.css'
import './ui/form.css'
import './ui/field.css'
import './ui/hint.css'
import './ui/filters.css'
import './ui/space.css'
import './shell/shell.css'
import './shell/antd.css'
import './shell/notices.css'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { CarillonApp } from './shell/app'
import { startI18n } from './i18n'

const root = document.getElementById('root')
if (!root) throw new Error('index.html has no #root')

// Not awaited at the top: the texts are a file that imports this one, and would wait for it.
void startI18n().then(() =>
  createRoot(root).render(
    <StrictMode>
      <CarillonApp />
    </StrictMode>,
  ),
)
