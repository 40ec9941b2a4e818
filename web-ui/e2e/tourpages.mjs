// Every page of the tour once, in the light theme.
import { axeTest } from './everypage.mjs'

axeTest('light')
