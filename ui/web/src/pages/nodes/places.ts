// Where the nodes stand on the map of the mesh.
export interface Places { size: { w: number; h: number }; at: Map<string, { x: number; y: number }> }

const ring = 6 // so many boxes stand around the leader without touching each other

/** placesOf puts the leader in the middle of the others; on a phone, or where they are many, above rows of them. */
export function placesOf(leader: { id: string } | undefined, others: readonly { id: string }[], narrow: boolean): Places {
  const at: Places['at'] = new Map()
  if (narrow || others.length > ring) {
    const columns = narrow ? 2 : 4
    const w = narrow ? 350 : 640
    const top = leader ? 150 : 45
    if (leader) at.set(leader.id, { x: w / 2, y: 45 })
    others.forEach((m, i) => {
      const row = Math.floor(i / columns)
      const inRow = Math.min(columns, others.length - row * columns)
      at.set(m.id, { x: (w / inRow) * (i % columns + 0.5), y: top + row * 90 })
    })
    return { size: { w, h: top + (Math.ceil(others.length / columns) - 1) * 90 + 45 }, at }
  }
  const size = { w: 560, h: 260 }
  if (leader) at.set(leader.id, { x: size.w / 2, y: size.h / 2 })
  others.forEach((m, i) => {
    const angle = (2 * Math.PI * i) / others.length - Math.PI / (others.length === 2 ? 1 : 2)
    at.set(m.id, { x: size.w / 2 + Math.cos(angle) * 190, y: size.h / 2 + Math.sin(angle) * 88 })
  })
  return { size, at }
}
