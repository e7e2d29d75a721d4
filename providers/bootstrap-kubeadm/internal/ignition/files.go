package ignition

import (
	"encoding/base64"
	"path"
	"strconv"
	"strings"

	"github.com/flatcar/ignition/config/v2_3/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
)

const (
	// root is the name of the root file system in Ignition documents.
	root = "root"
	// defaultMode is the mode of files without permissions.
	defaultMode = 0o644
	maxMode     = 0o7777
)

// file returns a file of root.
func file(path string, mode int, content []byte) types.File {
	return types.File{
		Node:          types.Node{Filesystem: root, Path: path},
		FileEmbedded1: types.FileEmbedded1{Mode: ptr.To(mode), Contents: types.FileContents{Source: dataURL(content)}},
	}
}

func dataURL(content []byte) string {
	if len(content) == 0 {
		return "data:,"
	}
	return "data:;base64," + base64.StdEncoding.EncodeToString(content)
}

// filesOf returns the files of a document: certificates, generated ones, and the user's. The user's file replaces another one of
// the same path, or is appended to it. at is the path of the user's files.
func filesOf(
	certificates []bootstrapv1.File, generated []types.File, user []bootstrapv1.File, at *field.Path,
) ([]types.File, field.ErrorList) {
	var out []types.File
	var all field.ErrorList
	for i, f := range certificates {
		file, _, errs := fileOf(f, field.NewPath("certificates").Index(i)) // Their values are ours.
		out, all = append(out, file), append(all, errs...)
	}
	out = append(out, generated...)
	index := map[string]int{}
	for i, f := range out {
		index[f.Path] = i
	}
	seen := map[string]bool{
		scriptPath: true, kubeadmConfigPath: true, fleetv1.RestoreScriptPath: true, fleetv1.RestoreConfigPath: true,
	}
	for i, f := range user {
		at := at.Index(i)
		file, content, errs := fileOf(f, at)
		if len(errs) == 0 && seen[file.Path] {
			errs = append(errs, invalid(at.Child("path"), "%s is in the document already", file.Path))
		}
		if len(errs) > 0 {
			all = append(all, errs...)
			continue
		}
		seen[file.Path] = true
		same, generated := index[file.Path]
		switch {
		case !generated:
			out = append(out, file)
		case file.Append:
			out[same].Contents.Source = appended(out[same].Contents.Source, content)
		default:
			out[same] = file
		}
	}
	return out, all
}

// appended returns the URL of one of our own URLs with content at its end.
func appended(source string, content []byte) string {
	_, encoded, _ := strings.Cut(source, ",")
	before, _ := base64.StdEncoding.DecodeString(encoded) // dataURL encoded it.
	return dataURL(append(before, content...))
}

// fileOf returns one file, and its content.
func fileOf(in bootstrapv1.File, at *field.Path) (types.File, []byte, field.ErrorList) {
	name, all := cleanPath(in.Path, at.Child("path"))
	if name == "/" || len(all) == 0 && path.Join(path.Dir(name), last(in.Path)) != name {
		all = append(all, invalid(at.Child("path"), "must be the path of a file, not of a directory"))
	}
	content, err := contentOf(in, at)
	if err != nil {
		all = append(all, err)
	}
	mode := defaultMode
	if in.Permissions != "" {
		parsed, err := strconv.ParseUint(strings.TrimPrefix(in.Permissions, "0o"), 8, 32)
		if err != nil || parsed > maxMode {
			all = append(all, invalid(at.Child("permissions"), "must be an octal mode of at most 07777, such as 0644"))
		}
		mode = int(parsed & maxMode)
	}
	user, group, errs := ownerOf(in.Owner, at.Child("owner"))
	out := file(name, mode, content)
	out.Append, out.User, out.Group = ptr.Deref(in.Append, false), user, group
	return out, content, append(all, errs...)
}

// last returns what is after the last slash of a path.
func last(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }

func contentOf(in bootstrapv1.File, at *field.Path) ([]byte, *field.Error) {
	switch in.Encoding {
	case "":
		return []byte(in.Content), nil
	case bootstrapv1.Base64:
		content, err := base64.StdEncoding.DecodeString(in.Content)
		if err != nil {
			return nil, invalid(at.Child("content"), "must be base64, as the encoding of the file specifies") // The error may quote it.
		}
		return content, nil
	case bootstrapv1.Gzip, bootstrapv1.GzipBase64:
	}
	return nil, invalid(at.Child("encoding"), unsupported)
}

// ownerOf returns the user and group of an owner such as root:root; nil for the default, which is root. Numbers are IDs.
func ownerOf(owner string, at *field.Path) (*types.NodeUser, *types.NodeGroup, field.ErrorList) {
	userName, groupName, _ := strings.Cut(owner, ":")
	var all field.ErrorList
	account := func(name string) (string, *int) {
		if id, err := strconv.ParseUint(name, 10, 31); err == nil {
			return "", ptr.To(int(id))
		}
		if !accountPattern.MatchString(name) {
			all = append(all, invalid(at, "must be the names or IDs of a user and a group, such as root:root"))
		}
		return name, nil
	}
	var user *types.NodeUser
	var group *types.NodeGroup
	if userName != "" {
		user = &types.NodeUser{}
		user.Name, user.ID = account(userName)
	}
	if groupName != "" {
		group = &types.NodeGroup{}
		group.Name, group.ID = account(groupName)
	}
	return user, group, all
}
