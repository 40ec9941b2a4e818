import 'antd/dist/reset.css'
import './styles.css'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { CarillonApp } from './app'
import { startI18n } from './i18n'

const root = document.getElementById('root')
if (!root) throw new Error('index.html has no #root')

await startI18n()
createRoot(root).render(
  <StrictMode>
    <CarillonApp />
  </StrictMode>,
)
