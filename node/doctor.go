package node

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/api/mesh"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
	"golang.org/x/sys/unix"
)

// Thresholds at which a node reports a problem.
const (
	// lowDisk is the free space below which to warn, in bytes: a day of a busy log and a
	// snapshot.
	lowDisk = 2 << 30
	// slowSync is the sync time at which every write is slow, and elections are delayed.
	slowSync = 100 * time.Millisecond
	// lowMemory is the free memory below which to warn, in MB: with less the machine swaps
	// or kills processes.
	lowMemory = 64
	// certificateEnds is how long before its expiry a certificate is reported.
	certificateEnds = 30 * 24 * time.Hour
	// longWait is the wait, in milliseconds, after which a run is reported. maxToldWaits
	// bounds the agents that are reported.
	longWait     = core.Time(60_000)
	maxToldWaits = 10
)

// findings builds the checks of a doctor.
type findings []api.Check

func (f *findings) add(name, level, found, do string) {
	*f = append(*f, api.Check{Name: name, Level: level, Found: found, Do: do})
}

// Doctor checks this node and the mesh as it sees it, and says what to do about
// problems. It changes nothing.
func (n *Node) Doctor(ctx context.Context) []api.Check {
	var f findings
	f.quorum(ctx, n)
	f.voters(ctx, n)
	f.members(n)
	f.versions(n)
	f.peers(n)
	f.clock(n)
	f.disk(n)
	f.memory()
	f.state(n)
	f.tree(n)
	f.files(n)
	f.scrub(n.Scrubbed())
	f.certificate(n)
	f.backups(n)
	f.waiting(n)
	return f
}

func (f *findings) quorum(ctx context.Context, n *Node) {
	st := n.standing()
	switch {
	case !st.Quorum && st.Age > 0:
		f.add("quorum", mesh.CheckBad, fmt.Sprintf("no leader for %s: nothing can be written", st.Age.Round(time.Second)),
			"bring back most of the voters (selvage raft list-peers); if they are lost for good, see selvage recover")
	case !st.Quorum:
		f.add("quorum", mesh.CheckBad, "no leader since this node was started",
			"see that the peers can be reached over UDP; selvage raft list-peers names them")
	default:
		if err := n.Ready(ctx); err != nil {
			f.add("quorum", mesh.CheckWarn, fmt.Sprintf("there is a leader, but this node is not ready: %v", err),
				"wait until it has caught up; if it does not, see its log")
			return
		}
		leader, _ := n.roster.node(st.Leader)
		f.add("quorum", mesh.CheckOK, "node "+cmp.Or(leader.Name, st.Leader.Short())+
			" leads, and this node is up to date", "")
	}
}

func (f *findings) voters(ctx context.Context, n *Node) {
	s, err := n.consensus.Autopilot(ctx)
	if err != nil {
		f.add("voters", mesh.CheckWarn, "the leader does not tell how the voters are", "look again in a moment")
		return
	}
	switch {
	case s.Voters < 3:
		f.add("voters", mesh.CheckWarn, fmt.Sprintf("%d voter: no failover until a third node", s.Voters),
			"add nodes: selvage token create")
	case s.Tolerance == 0:
		f.add("voters", mesh.CheckBad, fmt.Sprintf("of %d voters so many are gone that no further one may die", s.Voters),
			"bring them back, or add nodes that take their place")
	case !s.Healthy:
		f.add("voters", mesh.CheckWarn, "a voter is gone or behind", "see selvage autopilot state")
	default:
		f.add("voters", mesh.CheckOK, fmt.Sprintf("%d voters, %d may die", s.Voters, s.Tolerance), "")
	}
}

func (f *findings) members(n *Node) {
	var dead, cordoned []string
	err := n.ledger.View(func(tx *ledger.Tx) error {
		for _, m := range ledger.Roster(tx) {
			if !m.Member() {
				continue
			}
			if m.ID != n.ID() && !n.alive(m.ID) {
				dead = append(dead, m.Name)
			}
			if _, ok := company.DutyOf(tx, string(m.ID)); ok {
				cordoned = append(cordoned, m.Name)
			}
		}
		return nil
	})
	switch {
	case err != nil:
		f.add("members", mesh.CheckBad, err.Error(), "see the node's log")
	case len(dead) > 0:
		f.add("members", mesh.CheckWarn, "not to be heard: "+strings.Join(dead, ", "),
			"bring them back; what is gone for good: selvage node remove NAME")
	case len(cordoned) > 0:
		f.add("members", mesh.CheckNote, "get no new runs: "+strings.Join(cordoned, ", "),
			"selvage node uncordon NAME, when that is over")
	default:
		f.add("members", mesh.CheckOK, "all are alive", "")
	}
}

func (f *findings) peers(n *Node) {
	others := 0
	for id, m := range n.roster.all() {
		if m.Member() && id != n.ID() {
			others++
		}
	}
	t := n.transport.Stats()
	switch {
	case others > 0 && t.Connections == 0:
		f.add("ports", mesh.CheckBad, "no connection with any peer",
			fmt.Sprintf("let UDP through to and from port %d, here and there", n.advertised().Port()))
	case t.Refused["other_epoch"] > 0:
		f.add("ports", mesh.CheckWarn, "a node of another epoch of this mesh knocks",
			"on that node: selvage recover --follow")
	case t.Refused["wrong_mesh"] > 0:
		f.add("ports", mesh.CheckNote, "nodes of another mesh knock", "see their --seed and --join")
	default:
		f.add("ports", mesh.CheckOK, fmt.Sprintf("%d connections with %d other members", t.Connections, others), "")
	}
}

func (f *findings) clock(n *Node) {
	if err := n.clocks.mayLead(); err != nil {
		f.add("clock", mesh.CheckBad, err.Error(),
			"synchronise it (timedatectl set-ntp true); until then this node does not lead")
		return
	}
	off, nodes := n.clocks.skew()
	f.add("clock", mesh.CheckOK, fmt.Sprintf("%s off the median of %d", off.Round(time.Millisecond), nodes), "")
}

func (f *findings) disk(n *Node) {
	if err := n.consensus.Healthy(); err != nil {
		f.add("disk", mesh.CheckBad, err.Error(), "make room on the disk, or replace it; the node goes on by itself")
	} else {
		f.space(n.conf.Dir)
	}
	c := n.consensus.Stats()
	mean := time.Duration(0)
	if c.LogWrites > 0 {
		mean = c.LogWriteTime / time.Duration(c.LogWrites)
	}
	found := fmt.Sprintf("a synced write takes %s on average, the slowest took %s", mean.Round(10*time.Microsecond),
		c.LogWorst.Round(time.Millisecond))
	if mean > slowSync {
		f.add("sync", mesh.CheckWarn, found,
			"writes are as slow as this disk; a better card or an SSD makes them fast, --label and roles keep a slow node "+
				"from voting (selvage node role NODE observer)")
		return
	}
	f.add("sync", mesh.CheckOK, found, "")
}

func (f *findings) space(dir string) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		f.add("disk", mesh.CheckWarn, err.Error(), "")
		return
	}
	free := uint64(st.Bavail) * uint64(st.Bsize)
	found := fmt.Sprintf("%d MB free for %s", free>>20, dir)
	if free < lowDisk {
		f.add("disk", mesh.CheckWarn, found, "make room: a full disk refuses writes")
		return
	}
	f.add("disk", mesh.CheckOK, found, "")
}

func (f *findings) memory() {
	all, free := memory()
	switch found := fmt.Sprintf("%d of %d MB free", free, all); {
	case all == 0:
	case free < lowMemory:
		f.add("memory", mesh.CheckWarn, found, "fewer --slots, or --size small, or more memory")
	default:
		f.add("memory", mesh.CheckOK, found, "")
	}
}

func (f *findings) state(n *Node) {
	if err := n.mayWrite(); err != nil {
		f.add("state", mesh.CheckBad, err.Error(), "restore a backup: selvage snapshot restore")
		return
	}
	if err := n.ledger.Err(); errors.Is(err, ledger.ErrUpgrade) {
		f.add("state", mesh.CheckBad, err.Error(), "upgrade this node")
		return
	}
	if n.healing != nil && !n.healed.Load() {
		f.add("state", mesh.CheckBad, "this node's store was set aside ("+n.healing.reason+") and is being built anew "+
			"from its peers", "wait; if it does not end, see that the other voters run")
		return
	}
	if f.asides(n.conf.FS, n.conf.FS.PathDir(storeDir(n.conf))) {
		return
	}
	height, _ := n.ledger.Head()
	f.add("state", mesh.CheckOK, fmt.Sprintf("at height %d in epoch %d", height, n.epoch()), "")
}

// asides reports stores that were set aside, and whether there are any.
func (f *findings) asides(fsys vfs.FS, base string) bool {
	all := asides(fsys, base)
	for _, name := range all {
		why := "the reason is not known"
		if b, err := os.ReadFile(filepath.Join(base, name, asideReason)); err == nil {
			why = strings.TrimSpace(string(b))
		}
		f.add("state", mesh.CheckWarn,
			fmt.Sprintf("this node's store was set aside once and built anew; the old one is in %s: %s",
				filepath.Join(base, name), why),
			"check disk and memory of this machine; remove the directory when you know the cause")
	}
	return len(all) > 0
}

func (f *findings) files(n *Node) {
	switch b := n.blobs.Stats(); {
	case b.Damaged > 0:
		f.add("files", mesh.CheckBad, fmt.Sprintf("%d files on this node's disk are damaged, and no node that answers has "+
			"a good copy", b.Damaged),
			"start the nodes that are away; else upload these files again, or restore a backup; selvage scrub names them. "+
				"This disk loses data: replace it")
	case b.Rotten > 0:
		f.add("files", mesh.CheckWarn,
			fmt.Sprintf("%d times something in a file on this node's disk did not have its hash any more; %d of them were "+
				"put right with a peer's bytes", b.Rotten, b.Mended),
			"this disk loses data: replace it")
	default:
		f.add("files", mesh.CheckOK, "no rotten file was found", "")
	}
}

func (f *findings) scrub(s api.ScrubState) {
	found := "none yet since this node was started"
	if s.Ended != nil {
		found = "all of this node's disk was last read until " + s.Ended.Format(time.RFC3339)
	}
	if s.Running {
		found += fmt.Sprintf("; one is under way, at %.0f %%", 100*progress(s))
	}
	switch {
	case s.Damaged > s.Mended:
		f.add("scrub", mesh.CheckBad, fmt.Sprintf("%s: %d damaged files, %d of them mended", found, s.Damaged, s.Mended),
			"selvage scrub --status names them")
	case s.Damaged > 0:
		f.add("scrub", mesh.CheckWarn, fmt.Sprintf("%s: %d damaged files, all mended", found, s.Damaged),
			"this disk loses data: replace it")
	case s.Error != "":
		f.add("scrub", mesh.CheckWarn, found+"; it broke off: "+s.Error, "see the node's log")
	default:
		f.add("scrub", mesh.CheckOK, found, "")
	}
}

func (f *findings) certificate(n *Node) {
	if n.serving.cert == nil {
		return
	}
	leaf := n.serving.cert.pair.Leaf
	if leaf == nil && len(n.serving.cert.pair.Certificate) > 0 {
		leaf, _ = x509.ParseCertificate(n.serving.cert.pair.Certificate[0])
	}
	if leaf == nil {
		return
	}
	found := "the API's certificate is good until " + leaf.NotAfter.UTC().Format(time.DateOnly)
	if leaf.NotAfter.Sub(n.conf.Wall()) < certificateEnds {
		f.add("certificate", mesh.CheckWarn, found,
			"give a new one with --tls-cert and --tls-key, or remove the node's own and start it again")
		return
	}
	f.add("certificate", mesh.CheckOK, found, "")
}

func (f *findings) backups(n *Node) {
	b := n.conf.Backups
	if b.Every == 0 {
		f.add("backups", mesh.CheckNote, "this node makes none by itself",
			"on one or two nodes: selvage up --snapshot-every 24h --snapshot-to @backup.pub")
		return
	}
	all, err := backupsIn(b.Dir)
	if err == nil && len(all) > 0 {
		if info, err := os.Stat(all[len(all)-1]); err == nil && time.Since(info.ModTime()) < 2*b.Every {
			f.add("backups", mesh.CheckOK, fmt.Sprintf("%d in %s, the newest %s old", len(all), b.Dir,
				time.Since(info.ModTime()).Round(time.Minute)), "")
			return
		}
	}
	f.add("backups", mesh.CheckWarn, "the newest one in "+b.Dir+" is older than the schedule allows, or there is none",
		"see the node's log for why")
}

// waiting reports runs that wait for something that does not happen by itself.
func (f *findings) waiting(n *Node) {
	told := 0
	err := n.ledger.View(func(tx *ledger.Tx) error {
		now := core.TimeOf(n.consensus.Now())
		for _, row := range entity.Companies(tx) {
			runs, why := company.LongWaits(tx, row.ID, now, longWait, maxToldWaits-told)
			for i, r := range runs {
				name, _ := entity.AgentLabel(tx, row.ID, r.Agent)
				since := time.Duration(now-why[i].Since) * time.Millisecond
				f.add("runs", mesh.CheckWarn, fmt.Sprintf("run %s of agent %s (%s) has waited %s: %s", r.ID, name, row.Name,
					since.Round(time.Second), why[i].Text), string(why[i].Do))
			}
			if told += len(runs); told >= maxToldWaits {
				break
			}
		}
		return nil
	})
	switch {
	case err != nil:
		f.add("runs", mesh.CheckBad, err.Error(), "see the node's log")
	case told == 0:
		f.add("runs", mesh.CheckOK, "none waits for a node that can not be had", "")
	}
}
