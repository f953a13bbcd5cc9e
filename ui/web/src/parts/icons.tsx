// Our own line icons, on a grid of 16, drawn with the text's colour.
import { rem } from './scale'

const shapes = {
  home: 'M2.5 7.5 8 3l5.5 4.5V13h-4V9.5h-3V13h-4z', inbox: 'M2.5 9 4.5 3.5h7l2 5.5v3.5h-11zM2.5 9H6c0 2 4 2 4 0h3.5', issues: 'M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11zM8 5.5v3M8 10.5v.2',
  agents: 'M4 6.5h8v6H4zM8 6.5V3.5M6.5 9.2v.6M9.5 9.2v.6M6.5 3.5h3', routines: 'M13 8a5 5 0 1 1-1.6-3.7M13 2.5v2.6h-2.6M8 5.5V8l1.8 1.2', projects: 'M2.5 4.5h4l1.2 1.5h5.8v6.5h-11z', goals: 'M4 13.5v-11l7.5 2.7L4 8',
  org: 'M6 2.5h4v3H6zM2.5 10.5h4v3h-4zM9.5 10.5h4v3h-4zM8 5.5V8M4.5 10.5V8h7v2.5', approvals: 'M3 8.5 6.5 12 13 4.5', costs: 'M3 13V8M6.5 13V4M10 13V6.5M13.5 13V3', activity: 'M2 8.5h3l1.8-5 2.6 9 1.8-4H14',
  skills: 'M8 2.5l1.6 3.4 3.7.5-2.7 2.6.7 3.7L8 10.9l-3.3 1.8.7-3.7L2.7 6.4l3.7-.5z', secrets: 'M4 7.5h8v5.5H4zM5.5 7.5V5a2.5 2.5 0 0 1 5 0v2.5', nodes: 'M8 2.5v3M8 8m-2 0a2 2 0 1 0 4 0 2 2 0 1 0-4 0M6.4 9.3 3.5 12.5M9.6 9.3l2.9 3.2', ledger: 'M3.5 3h9v10h-9zM5.5 6h5M5.5 8.5h5M5.5 11H9',
  adapters: 'M5.5 2.5v3M10.5 2.5v3M4 5.5h8v2.5a4 4 0 0 1-8 0zM8 12v2', models: 'M8 2.5 13 5v6l-5 2.5L3 11V5zM3 5l5 2.5L13 5M8 7.5v6', settings: 'M2.5 5h6M11.5 5h2M2.5 11h2M7.5 11h6M10 3.5v3M6 9.5v3', companies: 'M3 13.5v-10h6v10M9 6.5h4v7M5 6h2M5 8.5h2M5 11h2M2 13.5h12',
  memory: 'M3 4.5c0-2.6 10-2.6 10 0v7c0 2.6-10 2.6-10 0zM3 4.5c0 2.6 10 2.6 10 0M3 8c0 2.6 10 2.6 10 0', people: 'M6 7.5a2.2 2.2 0 1 0 0-4.4 2.2 2.2 0 0 0 0 4.4zM2 13c0-4.5 8-4.5 8 0M10.5 7.2a2 2 0 0 0 0-4M11.5 9.4c1.6.3 2.5 1.5 2.5 3.6', processes: 'M4.5 4.5h7v7h-7zM6.5 6.5h3v3h-3zM6 2.5v2M10 2.5v2M6 11.5v2M10 11.5v2M2.5 6h2M2.5 10h2M11.5 6h2M11.5 10h2', messages: 'M2.5 4h11v8h-11zM2.5 4.5 8 9l5.5-4.5', topics: 'M8 8v5.5M8 8m-1.2 0a1.2 1.2 0 1 0 2.4 0 1.2 1.2 0 1 0-2.4 0M5.2 10.8a4 4 0 0 1 0-5.6M10.8 5.2a4 4 0 0 1 0 5.6M3.1 12.9a7 7 0 0 1 0-9.8M12.9 3.1a7 7 0 0 1 0 9.8', apps: 'M3 3h4v4H3zM9 3h4v4H9zM3 9h4v4H3zM11 9v4M9 11h4', constitution: 'M8 2.5v11M5 13.5h6M3 5h10M3 5 1.5 9.5h3zM13 5l-1.5 4.5h3z', decisions: 'M2.5 8h4M6.5 8l3-4H13M6.5 8l3 4H13M11 2.2 13.2 4 11 5.8M11 10.2l2.2 1.8-2.2 1.8', amendments: 'M9.5 2.5H4v11h8V5zM6 8h4M6 10.5h2.5M9.5 2.5V5H12', tree: 'M3 3h3v3H3zM10 5.5h3v3h-3zM10 10.5h3v3h-3zM4.5 6v6H10M4.5 7H10', services: 'M3 5.5h6.5M9.5 5.5m0 0a2 2 0 1 0 4 0 2 2 0 1 0-4 0M13 10.5H6.5M6.5 10.5m0 0a2 2 0 1 1-4 0 2 2 0 1 1 4 0', plus: 'M8 3v10M3 8h10', close: 'M4 4l8 8M12 4l-8 8', search: 'M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9zM10.3 10.3l3.2 3.2',
  down: 'M4 6l4 4 4-4', right: 'M6 4l4 4-4 4', left: 'M10 4 6 8l4 4', more: 'M3.5 8v.1M8 8v.1M12.5 8v.1', copy: 'M5.5 5.5h7v8h-7zM3.5 10.5v-8h7', check: 'M3 8.5 6.5 12 13 4.5', menu: 'M2.5 4.5h11M2.5 8h11M2.5 11.5h11', command: 'M3 4.5 6.5 8 3 11.5M8 11.5h5',
  sun: 'M8 5.2a2.8 2.8 0 1 0 0 5.6 2.8 2.8 0 0 0 0-5.6zM8 1.8v1M8 13.2v1M1.8 8h1M13.2 8h1M3.6 3.6l.7.7M11.7 11.7l.7.7M3.6 12.4l.7-.7M11.7 4.3l.7-.7', list: 'M5.5 4h8M5.5 8h8M5.5 12h8M2.5 4v.1M2.5 8v.1M2.5 12v.1', board: 'M2.5 3h3v10h-3zM6.5 3h3v6h-3zM10.5 3h3v8h-3z', full: 'M9.5 3H13v3.5M13 3 9 7M6.5 13H3V9.5M3 13l4-4', export: 'M8 10V2.5M5 5l3-2.7L11 5M3 9.5v3.5h10V9.5', play: 'M5 3.5l7.5 4.5L5 12.5z', pause: 'M5.5 3.5v9M10.5 3.5v9', stop: 'M4.5 4.5h7v7h-7z', link: 'M6.5 9.5l3-3M7.5 4.5l1-1a2.8 2.8 0 0 1 4 4l-1 1M8.5 11.5l-1 1a2.8 2.8 0 0 1-4-4l1-1', file: 'M4 2.5h5.5L12 5v8.5H4zM9.5 2.5V5H12',
}
export type IconName = keyof typeof shapes

export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
  return (
    <svg style={{ width: rem(size), height: rem(size) }} viewBox="0 0 16 16" fill="none" stroke="currentColor" strokeWidth="1.4" strokeLinecap="round" strokeLinejoin="round" aria-hidden="true" className="shrink-0">
      <path d={shapes[name]} />
    </svg>
  )
}
