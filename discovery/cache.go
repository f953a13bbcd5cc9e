package discovery

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/selvage-mesh/selvage/identity"
)

const (
	cacheFile   = "peers"
	cacheHeader = "selvage peers 1 "
)

// A cachedPeer is where a node was seen.
type cachedPeer struct {
	Node  identity.NodeID
	Seen  time.Time        // whole seconds
	Addrs []netip.AddrPort // the last first, at most maxCachedAddresses
}

// A peerCache remembers where members were, for the next start. Losing it costs
// nothing but seeds.
type peerCache map[identity.NodeID]cachedPeer

// learn notes that id was at addr. It reports whether that is worth writing.
func (c peerCache) learn(id identity.NodeID, addr netip.AddrPort, now time.Time) bool {
	old, known := c[id]
	addrs := append([]netip.AddrPort{addr}, slices.DeleteFunc(slices.Clone(old.Addrs),
		func(a netip.AddrPort) bool { return a == addr })...)
	addrs = addrs[:min(len(addrs), maxCachedAddresses)]
	c[id] = cachedPeer{id, now.Truncate(time.Second), addrs}
	if len(c) > maxCachedPeers {
		delete(c, c.newestFirst()[len(c)-1].Node)
	}
	return !known || !slices.Equal(addrs, old.Addrs)
}

func (c peerCache) newestFirst() []cachedPeer {
	return slices.SortedFunc(maps.Values(c), func(a, b cachedPeer) int {
		return cmp.Or(b.Seen.Compare(a.Seen), cmp.Compare(a.Node, b.Node))
	})
}

// encode writes the cache as text: a line "selvage peers 1 MESH", then a line
// for each node, the last seen first:
//
//	NODE SECONDS ADDRESS [ADDRESS [ADDRESS]]
//
// with IDs in hex, seconds since 1970 and addresses as IP:port, the last first.
// A reader skips what it can not read, and the whole file when its first line
// names another version or mesh.
func (c peerCache) encode(mesh identity.MeshID) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s%s\n", cacheHeader, mesh)
	for _, p := range c.newestFirst() {
		fmt.Fprintf(&b, "%s %d", p.Node, p.Seen.Unix())
		for _, a := range p.Addrs {
			fmt.Fprintf(&b, " %s", a)
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// decodeCache reads what encode wrote and counts the lines that it skipped.
func decodeCache(b []byte, mesh identity.MeshID) (c peerCache, skipped int) {
	c = peerCache{}
	first := true
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSuffix(line, "\n")
		if first {
			if first = false; line != cacheHeader+string(mesh) {
				return c, 1
			}
			continue
		}
		p, ok := parsePeer(line)
		if !ok || len(c) == maxCachedPeers {
			skipped++
			continue
		}
		c[p.Node] = p
	}
	return c, skipped
}

func parsePeer(line string) (cachedPeer, bool) {
	f := strings.Fields(line)
	if len(f) < 3 || len(f) > 2+maxCachedAddresses || !identity.NodeID(f[0]).Valid() {
		return cachedPeer{}, false
	}
	seconds, err := strconv.ParseInt(f[1], 10, 64)
	if err != nil || seconds < 0 {
		return cachedPeer{}, false
	}
	p := cachedPeer{Node: identity.NodeID(f[0]), Seen: time.Unix(seconds, 0).UTC()}
	for _, s := range f[2:] {
		a, err := netip.ParseAddrPort(s)
		if err != nil || !usable(unmap(a)) || a.Addr().Zone() != "" {
			return cachedPeer{}, false
		}
		p.Addrs = append(p.Addrs, unmap(a))
	}
	return p, true
}

// loadCache reads the cache of dir; one that is not there or not readable as a
// file is empty.
func loadCache(dir string, mesh identity.MeshID) (peerCache, int, error) {
	f, err := os.OpenInRoot(dir, cacheFile)
	if errors.Is(err, fs.ErrNotExist) {
		return peerCache{}, 0, nil
	}
	if err != nil {
		return peerCache{}, 0, fmt.Errorf("peer cache: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxCacheBytes))
	if err != nil {
		return peerCache{}, 0, fmt.Errorf("peer cache: %w", err)
	}
	c, skipped := decodeCache(b, mesh)
	return c, skipped, nil
}

// Remembered counts the nodes of a mesh, without self, that the peer cache in
// dir holds. One that can not be read holds none.
func Remembered(dir string, mesh identity.MeshID, self identity.NodeID) (n int) {
	c, _, err := loadCache(dir, mesh)
	if err != nil {
		return 0
	}
	delete(c, self)
	return len(c)
}

// saveCache replaces the cache of dir as a whole. The directory entry is not
// synced: after a power loss the older cache is as good.
func saveCache(dir string, mesh identity.MeshID, c peerCache) (err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("peer cache: %w", err)
	}
	defer root.Close()
	const next = cacheFile + ".new"
	f, err := root.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("peer cache: %w", err)
	}
	_, err = f.Write(c.encode(mesh))
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = root.Rename(next, cacheFile)
	}
	if err != nil {
		return fmt.Errorf("peer cache: %w", errors.Join(err, root.Remove(next)))
	}
	return nil
}

// CheckCache returns an error when the peer cache of dir is damaged; a node that starts
// uses what can be read of it. One that is not there is fine.
func CheckCache(dir string, mesh identity.MeshID) error {
	_, skipped, err := loadCache(dir, mesh)
	if err == nil && skipped > 0 {
		err = fmt.Errorf("%d lines of the peer cache can not be read", skipped)
	}
	return err
}
