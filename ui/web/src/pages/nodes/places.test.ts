import { expect, it } from 'vitest'
import { placesOf } from './places'

const nodes = (n: number) => Array.from({ length: n }, (_, i) => ({ id: `n${i}` }))
const box = { w: 128, h: 60 }

it('no two nodes of the map lie over each other, and none leaves it', () => {
  for (const narrow of [false, true]) {
    for (let n = 0; n <= 20; n++) {
      const { size, at } = placesOf({ id: 'leader' }, nodes(n), narrow)
      const all = [...at.values()]
      expect(all).toHaveLength(n + 1)
      for (const [i, a] of all.entries()) {
        expect(a.x >= box.w / 2 && a.x <= size.w - box.w / 2 && a.y >= box.h / 2 && a.y <= size.h - box.h / 2, `${n} ${narrow} ${i}`).toBe(true)
        for (const b of all.slice(i + 1)) expect(Math.abs(a.x - b.x) >= box.w || Math.abs(a.y - b.y) >= box.h, `${n} ${narrow}: ${JSON.stringify([a, b])}`).toBe(true)
      }
    }
  }
})
