package work

import (
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/routine"
	"github.com/selvage-mesh/selvage/ledger"
)

// folderList is the answer to a list of folders.
type folderList struct {
	Folders []routine.Folder `json:"folders"`
}

type newFolder struct {
	Kind     string          `json:"kind" enum:"routine,skill"`
	ParentID api.Opt[string] `json:"parentId" format:"uuid"`
	Name     string          `json:"name" minLength:"1" maxLength:"120"`
	Slug     api.Opt[string] `json:"slug" minLength:"1" maxLength:"120"`
	Color    api.Opt[string] `json:"color" minLength:"1" maxLength:"80"`
	Position api.Opt[int64]  `json:"position" minimum:"0" maximum:"1000000"`
}

type patchFolder struct {
	Name     *string         `json:"name,omitempty" minLength:"1" maxLength:"120" nullable:"false"`
	Slug     *string         `json:"slug,omitempty" minLength:"1" maxLength:"120" nullable:"false"`
	Color    api.Opt[string] `json:"color" minLength:"1" maxLength:"80"`
	Position *int64          `json:"position,omitempty" minimum:"0" maximum:"1000000" nullable:"false"`
}

type moveFolder struct {
	ParentID api.Opt[string] `json:"parentId" format:"uuid"`
	Position int64           `json:"position" minimum:"0" maximum:"1000000"`
}

type fileItem struct {
	Kind     string          `json:"kind" enum:"routine,skill"`
	ItemID   string          `json:"itemId" format:"uuid"`
	FolderID api.Opt[string] `json:"folderId" format:"uuid"`
}

type ownFolder struct {
	Slug api.Opt[string] `json:"slug" minLength:"1" maxLength:"120"`
}

func FolderRoutes() []api.Route {
	const tag, all = "folders", "/api/companies/{companyId}/folders"
	return []api.Route{
		{Method: "GET", Path: all, Tag: tag, Summary: "List the folders of a kind", Out: folderList{},
			Query: []api.Param{{Name: "kind", Doc: "routine or skill"}}, Handle: listFolders},
		{Method: "POST", Path: all, Tag: tag, Summary: "Make a folder", Who: api.Board, In: newFolder{},
			Out: routine.Folder{}, Status: 201, Handle: createFolder},
		{Method: "POST", Path: all + "/ensure-my", Tag: tag, Summary: "Find or make the user's own folder of skills",
			Who: api.Board, In: ownFolder{}, Out: routine.Folder{}, Handle: ensureFolder},
		{Method: "POST", Path: all + "/items/move", Tag: tag, Summary: "Put a routine into a folder", Who: api.Board,
			In: fileItem{}, Out: routine.FiledItem{}, Handle: moveItem},
		{Method: "PATCH", Path: all + "/{folderId}", Tag: tag, Summary: "Change a folder", Who: api.Board, In: patchFolder{},
			Out: routine.Folder{}, Handle: updateFolder},
		{Method: "POST", Path: all + "/{folderId}/move", Tag: tag, Summary: "Move a folder", Who: api.Board, In: moveFolder{},
			Out: routine.Folder{}, Handle: relocateFolder},
		{Method: "DELETE", Path: all + "/{folderId}", Tag: tag, Summary: "Delete a folder; what lies in it moves up",
			Who: api.Board, Out: routine.Folder{}, Handle: removeFolder},
	}
}

func listFolders(rc *api.Request) (r api.Response, err error) {
	kind := rc.Query("kind")
	if kind != "" && !slices.Contains(routine.FolderKinds, kind) {
		return r, api.Invalid("Invalid kind: expected routine or skill")
	}
	err = api.InCompany(rc, func(tx *ledger.Tx, row entity.Company) error {
		r = api.OK(folderList{routine.FoldersOf(tx, row.ID, kind)})
		return nil
	})
	return r, err
}

func doFolder(rc *api.Request, p routine.SaveFolder) (api.Response, error) {
	f, err := api.Do[routine.Folder](rc, routine.KindFolderSave, api.CompanyID(rc), p)
	return api.OK(f), err
}

func folderID(rc *api.Request) string { return strings.ToLower(rc.Path("folderId")) }

func createFolder(rc *api.Request) (api.Response, error) {
	in, err := api.Body[newFolder](rc)
	if err != nil {
		return api.Response{}, err
	}
	id, slug := api.NewID(), in.Slug.Pointer()
	if slug == nil && core.URLKey(in.Name) == "" {
		slug = new(api.OwnSlug("folder", id))
	}
	return doFolder(rc, routine.SaveFolder{ID: id, New: true, Kind: in.Kind, Parent: api.IdPointer(in.ParentID),
		Name: &in.Name, Slug: slug, Color: api.TextOf(in.Color),
		Position: in.Position.Pointer()})
}

func ensureFolder(rc *api.Request) (api.Response, error) {
	in, err := api.Body[ownFolder](rc)
	if err != nil {
		return api.Response{}, err
	}
	name := in.Slug.Or("my-skills")
	return doFolder(rc, routine.SaveFolder{ID: api.NewID(), New: true, Kind: routine.FolderSkills, Name: new("My skills"),
		Slug: &name, SystemKey: "my:" + rc.Actor.ID})
}

func updateFolder(rc *api.Request) (api.Response, error) {
	in, err := api.Body[patchFolder](rc)
	if err != nil {
		return api.Response{}, err
	}
	return doFolder(rc, routine.SaveFolder{ID: folderID(rc), Name: in.Name, Slug: in.Slug, Color: api.TextOf(in.Color),
		Position: in.Position})
}

func relocateFolder(rc *api.Request) (api.Response, error) {
	in, err := api.Body[moveFolder](rc)
	if err != nil {
		return api.Response{}, err
	}
	return doFolder(rc, routine.SaveFolder{ID: folderID(rc), Parent: api.IdPointer(in.ParentID), Position: &in.Position})
}

func removeFolder(rc *api.Request) (api.Response, error) {
	f, err := api.Do[routine.Folder](rc, routine.KindFolderDelete, api.CompanyID(rc),
		routine.DeleteFolder{ID: folderID(rc)})
	return api.OK(f), err
}

func moveItem(rc *api.Request) (api.Response, error) {
	in, err := api.Body[fileItem](rc)
	if err != nil {
		return api.Response{}, err
	}
	out, err := api.Do[routine.FiledItem](rc, routine.KindFolderFile, api.CompanyID(rc), routine.FileItem{Kind: in.Kind,
		Item: strings.ToLower(in.ItemID), Folder: api.BodyID(in.FolderID)})
	return api.OK(out), err
}
