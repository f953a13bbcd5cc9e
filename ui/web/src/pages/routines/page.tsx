import { Unbuilt } from '../../parts/unbuilt'
import { t } from '../../text/en'

export const Page = () => <Unbuilt title={t.nav.routines} command="selvage routine list" />
