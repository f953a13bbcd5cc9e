import './styles.css'
import { QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { client } from './data'
import { learnHere, watchNode } from './node'
import { router } from './routes'
import { beginTheme } from './theme'

beginTheme()
void learnHere()
watchNode()

const at = document.getElementById('root')
if (!at) throw new Error('index.html has no #root')
createRoot(at).render(
  <StrictMode>
    <QueryClientProvider client={client}>
      <RouterProvider router={router} />
    </QueryClientProvider>
  </StrictMode>,
)
