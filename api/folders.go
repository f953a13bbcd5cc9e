package api

import (
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/routine"
	"github.com/selvage-mesh/selvage/ledger"
)

// folderList is the answer to a list of folders.
type folderList struct {
	Folders []routine.Folder `json:"folders"`
}

type newFolder struct {
	Kind     string      `json:"kind" enum:"routine,skill"`
	ParentID Opt[string] `json:"parentId" format:"uuid"`
	Name     string      `json:"name" minLength:"1" maxLength:"120"`
	Slug     Opt[string] `json:"slug" minLength:"1" maxLength:"120"`
	Color    Opt[string] `json:"color" minLength:"1" maxLength:"80"`
	Position Opt[int64]  `json:"position" minimum:"0" maximum:"1000000"`
}

type patchFolder struct {
	Name     *string     `json:"name,omitempty" minLength:"1" maxLength:"120" nullable:"false"`
	Slug     *string     `json:"slug,omitempty" minLength:"1" maxLength:"120" nullable:"false"`
	Color    Opt[string] `json:"color" minLength:"1" maxLength:"80"`
	Position *int64      `json:"position,omitempty" minimum:"0" maximum:"1000000" nullable:"false"`
}

type moveFolder struct {
	ParentID Opt[string] `json:"parentId" format:"uuid"`
	Position int64       `json:"position" minimum:"0" maximum:"1000000"`
}

type fileItem struct {
	Kind     string      `json:"kind" enum:"routine,skill"`
	ItemID   string      `json:"itemId" format:"uuid"`
	FolderID Opt[string] `json:"folderId" format:"uuid"`
}

type ownFolder struct {
	Slug Opt[string] `json:"slug" minLength:"1" maxLength:"120"`
}

func folderRoutes() []Route {
	const tag, all = "folders", "/api/companies/{companyId}/folders"
	return []Route{
		{Method: "GET", Path: all, Tag: tag, Summary: "List the folders of a kind", Out: folderList{}, Query: []Param{{Name: "kind", Doc: "routine or skill"}}, Handle: listFolders},
		{Method: "POST", Path: all, Tag: tag, Summary: "Make a folder", Who: Board, In: newFolder{}, Out: routine.Folder{}, Status: 201, Handle: createFolder},
		{Method: "POST", Path: all + "/ensure-my", Tag: tag, Summary: "Find or make the user's own folder of skills", Who: Board, In: ownFolder{}, Out: routine.Folder{}, Handle: ensureFolder},
		{Method: "POST", Path: all + "/items/move", Tag: tag, Summary: "Put a routine into a folder", Who: Board, In: fileItem{}, Out: routine.FiledItem{}, Handle: moveItem},
		{Method: "PATCH", Path: all + "/{folderId}", Tag: tag, Summary: "Change a folder", Who: Board, In: patchFolder{}, Out: routine.Folder{}, Handle: updateFolder},
		{Method: "POST", Path: all + "/{folderId}/move", Tag: tag, Summary: "Move a folder", Who: Board, In: moveFolder{}, Out: routine.Folder{}, Handle: relocateFolder},
		{Method: "DELETE", Path: all + "/{folderId}", Tag: tag, Summary: "Delete a folder; what lies in it moves up", Who: Board, Out: routine.Folder{}, Handle: removeFolder},
	}
}

func listFolders(rc *Request) (r Response, err error) {
	kind := rc.Query("kind")
	if kind != "" && !slices.Contains(routine.FolderKinds, kind) {
		return r, Invalid("Invalid kind: expected routine or skill")
	}
	err = inCompany(rc, func(tx *ledger.Tx, row company.Company) error {
		r = OK(folderList{routine.FoldersOf(tx, row.ID, kind)})
		return nil
	})
	return r, err
}

func doFolder(rc *Request, p routine.SaveFolder) (Response, error) {
	f, err := Do[routine.Folder](rc, routine.KindFolderSave, companyID(rc), p)
	return OK(f), err
}

func folderID(rc *Request) string { return strings.ToLower(rc.Path("folderId")) }

func createFolder(rc *Request) (Response, error) {
	in, err := Body[newFolder](rc)
	if err != nil {
		return Response{}, err
	}
	id, slug := NewID(), in.Slug.Pointer()
	if slug == nil && core.URLKey(in.Name) == "" {
		slug = new(ownSlug("folder", id))
	}
	return doFolder(rc, routine.SaveFolder{ID: id, New: true, Kind: in.Kind, Parent: idPointer(in.ParentID), Name: &in.Name, Slug: slug, Color: textOf(in.Color),
		Position: in.Position.Pointer()})
}

func ensureFolder(rc *Request) (Response, error) {
	in, err := Body[ownFolder](rc)
	if err != nil {
		return Response{}, err
	}
	name := in.Slug.Or("my-skills")
	return doFolder(rc, routine.SaveFolder{ID: NewID(), New: true, Kind: routine.FolderSkills, Name: new("My skills"), Slug: &name, SystemKey: "my:" + rc.Actor.ID})
}

func updateFolder(rc *Request) (Response, error) {
	in, err := Body[patchFolder](rc)
	if err != nil {
		return Response{}, err
	}
	return doFolder(rc, routine.SaveFolder{ID: folderID(rc), Name: in.Name, Slug: in.Slug, Color: textOf(in.Color), Position: in.Position})
}

func relocateFolder(rc *Request) (Response, error) {
	in, err := Body[moveFolder](rc)
	if err != nil {
		return Response{}, err
	}
	return doFolder(rc, routine.SaveFolder{ID: folderID(rc), Parent: idPointer(in.ParentID), Position: &in.Position})
}

func removeFolder(rc *Request) (Response, error) {
	f, err := Do[routine.Folder](rc, routine.KindFolderDelete, companyID(rc), routine.DeleteFolder{ID: folderID(rc)})
	return OK(f), err
}

func moveItem(rc *Request) (Response, error) {
	in, err := Body[fileItem](rc)
	if err != nil {
		return Response{}, err
	}
	out, err := Do[routine.FiledItem](rc, routine.KindFolderFile, companyID(rc), routine.FileItem{Kind: in.Kind, Item: strings.ToLower(in.ItemID), Folder: bodyID(in.FolderID)})
	return OK(out), err
}
