package mesh

import (
	"encoding/base64"
	"net/http"
	"time"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/identity"
)

// BackupRoutes stream backups of the mesh to operators.
func BackupRoutes() []api.Route {
	return []api.Route{
		{Method: "POST", Path: "/api/v1/mesh/snapshot", Once: true, Tag: "mesh",
			Summary: "Stream a sealed backup of the mesh, as this node has it", Who: api.Admin,
			In: takeBackup{}, Media: []string{"application/octet-stream"}, Handle: streamBackup},
	}
}

type takeBackup struct {
	Recipients []string       `json:"recipients,omitempty" maxItems:"16" doc:"public keys (selvage-recipient-…) of those who can open it"`
	Passphrase *passphraseKey `json:"passphrase,omitempty" doc:"a public key that follows from a passphrase, which stays with the caller"`
	Files      bool           `json:"files,omitempty" doc:"with attachments and images"`
}

type passphraseKey struct {
	Recipient string `json:"recipient" maxLength:"200"`
	Salt      string `json:"salt" maxLength:"100" doc:"base64"`
	Time      int64  `json:"time" minimum:"1" maximum:"16"`
	Memory    int64  `json:"memoryKiB" minimum:"8" maximum:"1048576"`
	Threads   int64  `json:"threads" minimum:"1" maximum:"255"`
}

func (in takeBackup) recipients() (to []identity.Recipient, err error) {
	for _, text := range in.Recipients {
		r, err := identity.ParseRecipient(text)
		if err != nil {
			return nil, api.Invalid("recipients: %v", err)
		}
		to = append(to, r)
	}
	if p := in.Passphrase; p != nil {
		r, err := identity.ParseRecipient(p.Recipient)
		if err != nil {
			return nil, api.Invalid("passphrase: %v", err)
		}
		salt, err := base64.StdEncoding.DecodeString(p.Salt)
		if err != nil {
			return nil, api.Invalid("passphrase: salt is not base64")
		}
		r.KDF = &identity.KDF{Salt: salt, Time: uint32(p.Time), Memory: uint32(p.Memory), Threads: uint8(p.Threads)}
		to = append(to, r)
	}
	if len(to) == 0 || len(to) > identity.MaxRecipients {
		return nil, api.Invalid("recipients: 1 to %d who can open the backup", identity.MaxRecipients)
	}
	return to, nil
}

// streamBackup streams a backup without a time limit. If it fails on the way the
// connection breaks, and the received part can not be opened.
func streamBackup(rc *api.Request) (api.Response, error) {
	s := rc.Server
	in, err := api.Body[takeBackup](rc)
	if err != nil {
		return api.Response{}, err
	}
	to, err := in.recipients()
	if err != nil {
		return api.Response{}, err
	}
	if s.Cfg.Backup == nil {
		return api.Response{}, errNotHere
	}
	s.Log.Info("a backup is taken", "by", rc.Actor.ID, "files", in.Files)
	return api.Response{Stream: func(w http.ResponseWriter, r *http.Request) error {
		leave, err := s.Stream()
		if err != nil {
			return err
		}
		defer leave()
		ctx, cancel := s.Within(r.Context())
		defer cancel()
		control := http.NewResponseController(w)
		_ = control.SetReadDeadline(time.Time{})
		w.Header().Set("Content-Type", "application/octet-stream")
		out := &patientWriter{w: w, control: control}
		if err := s.Cfg.Backup(ctx, out, to, in.Files); err != nil {
			if out.wrote {
				s.Log.Error("a backup broke off", "error", err)
				panic(http.ErrAbortHandler)
			}
			return err
		}
		return nil
	}}, nil
}

// patientWriter gives each write its own deadline: it waits for a slow reader, but not
// for one that has stopped reading.
type patientWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
	wrote   bool
}

func (p *patientWriter) Write(b []byte) (int, error) {
	_ = p.control.SetWriteDeadline(time.Now().Add(backupWriteTimeout))
	p.wrote = true
	return p.w.Write(b)
}

// backupWriteTimeout bounds one write of a backup.
const backupWriteTimeout = 2 * time.Minute
