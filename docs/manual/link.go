package manual

import (
	"fmt"
	"net/url"
	"path"
	"strings"

	"github.com/blang/semver/v4"

	"sigs.k8s.io/cluster-api/docs/book"
	"sigs.k8s.io/cluster-api/sdk/version"
)

const (
	// Repository is where links that leave the book lead to.
	Repository = "https://github.com/kubernetes-sigs/cluster-api"
	// folder is that of the pages in the repository.
	folder = "docs/book"
	// home is the file of the page that comes first.
	home = "index.html"
)

// revision returns the tag or commit of the repository that a program was built from, as far as it is known.
func revision(info version.Info) string {
	v, err := semver.ParseTolerant(info.GitVersion)
	released := err == nil && info.GitTreeState != "dirty" && len(v.Build) == 0
	for _, part := range v.Pre {
		released = released && part.VersionStr != "devel" && len(part.VersionStr) < len("20060102150405-") // A pseudo-version has a time.
	}
	switch {
	case released:
		return info.GitVersion
	case info.GitCommit != "":
		return info.GitCommit
	}
	return "main"
}

// fileOf returns the file of a page on the site.
func fileOf(page string) string {
	if page == book.Index {
		return home
	}
	return strings.TrimSuffix(page, ".md") + ".html"
}

// resolver returns the function that resolves links of pages. pages are the files of all pages.
func resolver(pages map[string]bool, revision string) func(string) (string, bool, error) {
	return func(link string) (string, bool, error) {
		to, err := url.Parse(link)
		switch {
		case err != nil:
			return "", false, err
		case to.Scheme != "" || to.Host != "":
			return link, true, nil
		case to.Path == "":
			return link, false, nil
		}
		fragment := ""
		if to.Fragment != "" {
			fragment = "#" + to.Fragment
		}
		file := path.Join(folder, to.Path)
		switch inside, ok := strings.CutPrefix(file, folder+"/"); {
		case ok && pages[inside]:
			return fileOf(inside) + fragment, false, nil
		case ok:
			return "", false, fmt.Errorf("the link %s leads to no page", link)
		case strings.HasPrefix(file, "../") || strings.HasPrefix(to.Path, "/"):
			return "", false, fmt.Errorf("the link %s leaves the repository", link)
		}
		return Repository + "/blob/" + revision + "/" + file + fragment, true, nil
	}
}
