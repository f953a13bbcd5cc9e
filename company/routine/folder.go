package routine

import (
	"cmp"
	"regexp"
	"slices"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// Kinds of folders. Persisted: do not rename.
const (
	FolderRoutines = "routine"
	FolderSkills   = "skill"
)

// FolderKinds lists all kinds.
var FolderKinds = []string{FolderRoutines, FolderSkills}

const (
	// MaxFolders bounds the folders of a company, MaxFolderDepth their nesting.
	MaxFolders     = 500
	MaxFolderDepth = 8
)

// A Folder groups routines or skills.
type Folder struct {
	ID        string           `cbor:"1,keyasint" json:"id"`
	Company   ledger.CompanyID `cbor:"2,keyasint" json:"companyId"`
	Kind      string           `cbor:"3,keyasint" json:"kind"`
	Parent    core.NullText    `cbor:"4,keyasint,omitempty" json:"parentId"`
	Name      string           `cbor:"5,keyasint" json:"name"`
	Slug      string           `cbor:"6,keyasint" json:"slug"`
	Color     core.NullText    `cbor:"7,keyasint,omitempty" json:"color"`
	Position  int64            `cbor:"8,keyasint,omitempty" json:"position"`
	SystemKey core.NullText    `cbor:"9,keyasint,omitempty" json:"systemKey"` // set if the system made the folder
	CreatedAt core.Time        `cbor:"10,keyasint" json:"createdAt"`
	UpdatedAt core.Time        `cbor:"11,keyasint" json:"updatedAt"`
}

var Folders = core.Owned(ledger.NewTable[string, Folder]("folder"))

// SaveFolder is the payload of folder.save. With New it creates a folder; otherwise it
// changes one, and a nil field keeps the value.
type SaveFolder struct {
	ID        string  `cbor:"1,keyasint"`
	New       bool    `cbor:"2,keyasint,omitempty"`
	Kind      string  `cbor:"3,keyasint,omitempty"`
	Parent    *string `cbor:"4,keyasint,omitempty"`
	Name      *string `cbor:"5,keyasint,omitempty"`
	Slug      *string `cbor:"6,keyasint,omitempty"`
	Color     *string `cbor:"7,keyasint,omitempty"`
	Position  *int64  `cbor:"8,keyasint,omitempty"`
	SystemKey string  `cbor:"9,keyasint,omitempty"` // an existing folder with this key is returned instead
}

// DeleteFolder is the payload of folder.delete.
type DeleteFolder struct {
	ID string `cbor:"1,keyasint"`
}

// FileItem is the payload of folder.file, which moves a routine into a folder.
type FileItem struct {
	Kind   string `cbor:"1,keyasint"`
	Item   string `cbor:"2,keyasint"`
	Folder string `cbor:"3,keyasint,omitempty"` // "" removes it from its folder
}

const (
	KindFolderSave   = "folder.save"
	KindFolderDelete = "folder.delete"
	KindFolderFile   = "folder.file"
)

var folderKinds = []company.Kind{
	{Name: KindFolderSave, From: company.FromBoard, Traits: company.Importable, Weight: company.Weights.Marks,
		Do: ledger.Typed(saveFolder)},
	{Name: KindFolderDelete, From: company.FromBoard, Weight: company.Weights.Erase, Do: ledger.Typed(deleteFolder)},
	{Name: KindFolderFile, From: company.FromBoard, Weight: company.Weights.Marks, Do: ledger.Typed(fileItem)},
}

// FoldersOf returns the folders of a kind ("" for all kinds), sorted by parent, position and
// name.
func FoldersOf(tx *ledger.Tx, company ledger.CompanyID, kind string) []Folder {
	out := []Folder{}
	for _, f := range Folders.All(tx, company) {
		if kind == "" || f.Kind == kind {
			out = append(out, f)
		}
	}
	slices.SortStableFunc(out, func(a, b Folder) int {
		return cmp.Or(cmp.Compare(a.Parent, b.Parent), cmp.Compare(a.Position, b.Position), cmp.Compare(a.Name, b.Name))
	})
	return out
}

func folderIs(tx *ledger.Tx, company ledger.CompanyID, id, kind string) bool {
	f, ok := Folders.Get(tx, company, id)
	return ok && f.Kind == kind
}

func errNoFolder() error { return ledger.Refuse(ledger.NotFound, nil, "Folder not found") }

var folderSlug = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

func saveFolder(c *ledger.Context, p SaveFolder) (any, error) {
	company, now := c.Cmd.Company, core.TimeOf(c.Now)
	f, ok := Folders.Get(c.Tx, company, p.ID)
	action := "folder.updated"
	if p.New {
		if p.SystemKey != "" {
			for _, there := range FoldersOf(c.Tx, company, p.Kind) {
				if there.SystemKey == core.NullText(p.SystemKey) {
					return there, nil
				}
			}
		}
		if err := core.CheckNewID(c.Tx, p.ID); err != nil {
			return nil, err
		}
		if err := core.HasRoom(Folders.All(c.Tx, company), MaxFolders, "folders"); err != nil {
			return nil, err
		}
		f, action = Folder{ID: p.ID, Company: company, Kind: p.Kind, SystemKey: core.NullText(p.SystemKey), CreatedAt: now},
			"folder.created"
		f.Position = int64(len(FoldersOf(c.Tx, company, p.Kind)))
	} else if !ok {
		return nil, errNoFolder()
	}
	core.AssignText(&f.Parent, p.Parent)
	core.Assign(&f.Name, p.Name)
	core.Assign(&f.Slug, p.Slug)
	core.AssignText(&f.Color, p.Color)
	core.Assign(&f.Position, p.Position)
	if f.Slug == "" {
		f.Slug = cmp.Or(core.URLKey(f.Name), "folder")
	}
	f.UpdatedAt = now
	if err := f.check(c.Tx); err != nil {
		return nil, err
	}
	Folders.Put(c.Tx, company, f.ID, f)
	c.Record(ledger.Change{Action: action, EntityType: "folder", EntityID: f.ID, Details: core.Object{}.Str("name",
		f.Name).Str("kind", f.Kind).Close()})
	return f, nil
}

func (f Folder) check(tx *ledger.Tx) error {
	switch {
	case !slices.Contains(FolderKinds, f.Kind):
		return ledger.Refuse(ledger.Invalid, nil, "Unknown kind of folder")
	case f.Name == "" || len(f.Name) > entity.MaxName || len(f.Color) > entity.MaxName || len(f.Slug) > entity.MaxName ||
		f.Position < 0:
		return ledger.Refuse(ledger.Invalid, nil,
			"name: required; name, color and slug have at most %d bytes, position is 0 or more", entity.MaxName)
	case !folderSlug.MatchString(f.Slug):
		return ledger.Refuse(ledger.Invalid, nil, "A folder's slug has small letters, digits and single dashes")
	}
	for _, other := range FoldersOf(tx, f.Company, f.Kind) {
		if other.ID != f.ID && other.Parent == f.Parent && other.Slug == f.Slug {
			return ledger.Refuse(ledger.Conflict, core.Object{}.Str("folderId", other.ID).Close(),
				"There is a folder %q in this place", f.Slug)
		}
	}
	depth := 1
	for at := f.Parent; at != ""; depth++ {
		parent, ok := Folders.Get(tx, f.Company, string(at))
		switch {
		case !ok || parent.Kind != f.Kind:
			return ledger.Refuse(ledger.NotFound, nil, "Parent folder not found")
		case parent.ID == f.ID:
			return ledger.Refuse(ledger.Unprocessable, nil, "A folder can not lie in itself")
		case depth >= MaxFolderDepth:
			return ledger.Refuse(ledger.Unprocessable, nil, "Folders nest at most %d deep", MaxFolderDepth)
		}
		at = parent.Parent
	}
	return nil
}

// deleteFolder deletes a folder and moves its content to its parent.
func deleteFolder(c *ledger.Context, p DeleteFolder) (any, error) {
	company, now := c.Cmd.Company, core.TimeOf(c.Now)
	f, ok := Folders.Get(c.Tx, company, p.ID)
	if !ok {
		return nil, errNoFolder()
	}
	for _, r := range RoutinesOf(c.Tx, company) {
		if string(r.Folder) == f.ID {
			r.Folder = f.Parent
			Routines.Put(c.Tx, company, r.ID, r)
		}
	}
	for _, child := range FoldersOf(c.Tx, company, f.Kind) {
		if string(child.Parent) != f.ID {
			continue
		}
		child.Parent, child.UpdatedAt = f.Parent, now
		for n := 2; child.check(c.Tx) != nil && n < MaxFolders+2; n++ { // only the slug can conflict
			child.Slug = core.Snippet(child.Slug, 80) + "-" + core.UintText(uint64(n))
		}
		Folders.Put(c.Tx, company, child.ID, child)
	}
	Folders.Delete(c.Tx, company, f.ID)
	c.Record(ledger.Change{Action: "folder.deleted", EntityType: "folder", EntityID: f.ID,
		Details: core.Object{}.Str("name", f.Name).Str("kind", f.Kind).Close()})
	return f, nil
}

func fileItem(c *ledger.Context, p FileItem) (any, error) {
	company := c.Cmd.Company
	if p.Folder != "" && !folderIs(c.Tx, company, p.Folder, p.Kind) {
		return nil, errNoFolder()
	}
	r, ok := Routines.Get(c.Tx, company, p.Item)
	if p.Kind != FolderRoutines || !ok {
		return nil, ledger.Refuse(ledger.NotFound, nil, "Item not found")
	}
	r.Folder, r.UpdatedAt = core.NullText(p.Folder), core.TimeOf(c.Now)
	Routines.Put(c.Tx, company, r.ID, r)
	c.Record(ledger.Change{Action: "folder.item_moved", EntityType: "routine", EntityID: r.ID,
		Details: core.Object{}.Null("folderId", p.Folder).Close()})
	return FiledItem{p.Kind, p.Item, core.NullText(p.Folder)}, nil
}

// A FiledItem says in which folder an item is.
type FiledItem struct {
	Kind   string        `cbor:"1,keyasint" json:"kind"`
	Item   string        `cbor:"2,keyasint" json:"itemId"`
	Folder core.NullText `cbor:"3,keyasint,omitempty" json:"folderId"`
}
