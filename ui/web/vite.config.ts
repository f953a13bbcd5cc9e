import { existsSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { gzipSync } from 'node:zlib'
import tailwind from '@tailwindcss/vite'
import react from '@vitejs/plugin-react'
import { defineConfig, type Plugin } from 'vite'
import { scaled } from './build/scaled.mjs'
import { sources } from './build/sources.mjs'

const here = import.meta.dirname
const dist = resolve(here, '../dist')

// The script that the dashboard loads first, compressed, is at most this.
const maxFirstScript = 250 * 1024

type Chunk = { file: string; name?: string; src?: string; isEntry?: boolean; imports?: string[] }

// firstScripts lists the chunks that the entry and a page load before the page is there.
function firstScripts(manifest: Record<string, Chunk>, page: string): string[] {
  const found = new Set<string>()
  const walk = (key: string) => {
    const chunk = manifest[key]
    if (!chunk || found.has(chunk.file)) return
    found.add(chunk.file)
    chunk.imports?.forEach(walk)
  }
  Object.keys(manifest).filter((key) => manifest[key]?.isEntry || key === page).forEach(walk)
  return [...found]
}

// packed replaces what compresses by its gzip, measures the first load, and writes SOURCES.
function packed(): Plugin {
  return {
    name: 'packed',
    apply: 'build',
    closeBundle() {
      const manifestFile = join(dist, 'manifest.json')
      const manifest = JSON.parse(readFileSync(manifestFile, 'utf8')) as Record<string, Chunk>
      rmSync(manifestFile)
      const sizes: Record<string, number> = {}
      for (const name of readdirSync(join(dist, 'assets'))) {
        const file = join(dist, 'assets', name)
        if (!/\.(js|css|svg)$/.test(name)) continue
        const small = gzipSync(readFileSync(file), { level: 9 })
        small[9] = 255 // the system that packed it does not count
        sizes[`assets/${name}`] = small.length
        writeFileSync(`${file}.gz`, small)
        rmSync(file)
      }
      writeFileSync(join(dist, 'SOURCES'), sources(here) + '\n')
      const first = firstScripts(manifest, 'src/pages/home/page.tsx').filter((file) => file.endsWith('.js'))
      const bytes = first.reduce((sum, file) => sum + (sizes[file] ?? 0), 0)
      const total = readdirSync(join(dist, 'assets')).reduce((sum, n) => sum + statSync(join(dist, 'assets', n)).size, 0)
      console.log(`first load of Home: ${(bytes / 1024).toFixed(1)} KB of script in ${first.length} files (limit ${maxFirstScript / 1024}); all assets: ${(total / 1024).toFixed(0)} KB`)
      if (bytes > maxFirstScript) throw new Error(`the first load of Home is ${bytes} bytes of script, more than ${maxFirstScript}`)
    },
  }
}

const modules = resolve(here, 'node_modules')
const licenceFile = /^(licen[sc]e|copying|notice)(\.(md|txt))?$/i

// licensed writes ui/packages.json: the packages and fonts that have a part in dist, with their licences, for NOTICE.
function licensed(): Plugin {
  return {
    name: 'licensed',
    apply: 'build',
    generateBundle(_, bundle) {
      const found = new Set(['tailwindcss']) // its reset and utilities are in the style sheet
      for (const part of Object.values(bundle)) {
        for (const file of part.type === 'chunk' ? part.moduleIds : part.originalFileNames) {
          const name = /.*node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(resolve(here, file))?.[1]
          if (name && !file.startsWith('\0')) found.add(name)
        }
      }
      const rows = [...found].sort().filter((name) => existsSync(join(modules, name, 'package.json'))).map((name) => {
        const about = JSON.parse(readFileSync(join(modules, name, 'package.json'), 'utf8')) as { version: string; license: string }
        const texts = readdirSync(join(modules, name)).filter((f) => licenceFile.test(f)).sort().map((f) => ({ name: f, body: readFileSync(join(modules, name, f), 'utf8').replaceAll('\r\n', '\n').trim() }))
        return { name, version: about.version, licence: about.license, texts }
      })
      writeFileSync(resolve(here, '../packages.json'), JSON.stringify(rows, null, 1) + '\n')
    },
  }
}

const node = process.env['SELVAGE_URL'] ?? 'http://127.0.0.1:3100'

export default defineConfig({
  plugins: [react(), tailwind(), licensed(), packed()],
  root: here,
  css: { postcss: { plugins: [scaled] } },
  build: {
    outDir: dist,
    emptyOutDir: true,
    assetsInlineLimit: 0,
    target: 'es2022',
    manifest: 'manifest.json',
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rollupOptions: { output: { hashCharacters: 'hex' } },
  },
  server: {
    port: 5173,
    // The node takes a write only from its own page: the proxy shows its address as the origin.
    proxy: Object.fromEntries(['/api', '/openapi.json', '/healthz', '/readyz', '/board.json'].map((at) => [at, {
      target: node, changeOrigin: true, headers: { origin: node },
    }])),
  },
})
