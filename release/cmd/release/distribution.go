package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	clusterctl "sigs.k8s.io/cluster-api/clusterctl/command/root"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/release/distribution"
	"sigs.k8s.io/cluster-api/release/program"
)

const (
	// formulaFile and krewFile are for Homebrew and Krew.
	formulaFile = "clusterctl.rb"
	krewFile    = "clusterctl.krew.yaml"

	maintainer = "The Cluster API authors <noreply@cluster-api.sigs.k8s.io>"

	clusterctlSummary = "Install and operate Cluster API management clusters"
	capiSummary       = "Cluster API management cluster in one program"

	clusterctlDescription = "clusterctl turns a Kubernetes cluster into a management cluster of Cluster API,\n" +
		"creates, upgrades and deletes workload clusters, and shows what they wait for."
	capiDescription = "capi runs etcd, kube-apiserver and the controllers of Cluster API in one process.\n" +
		"The unit capi.service is neither enabled nor started by the installation."

	// capiAfterInstall and capiBeforeRemove are scripts of packages: systemd may not run, as in a container.
	capiAfterInstall = "if command -v systemd-sysusers >/dev/null; then systemd-sysusers capi.conf; fi\n" +
		"if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi\n"
	capiBeforeRemove = "if [ -d /run/systemd/system ]; then systemctl disable --now capi.service || true; fi\n"
)

// distributor writes what package managers install, from the programs of a release.
type distributor struct {
	release
	folder *folder
	// root is that of the repository.
	root string
	// time is that of all files.
	time time.Time

	license []byte
	manuals []distribution.File
}

// distribute writes packages, archives and manifests for package managers, of the programs that are in the folder.
func (r release) distribute(f *folder, root string, modified time.Time) error {
	d := &distributor{release: r, folder: f, root: root, time: modified}
	var err error
	if d.license, err = os.ReadFile(filepath.Join(root, "LICENSE")); err != nil {
		return err
	}
	if d.manuals, err = d.manualPages(newClusterctl()); err != nil {
		return err
	}
	var downloads []distribution.Download
	for _, p := range r.platforms {
		download, err := d.archive(p)
		if err != nil {
			return err
		}
		downloads = append(downloads, download)
		if p.OS == "linux" {
			if err := d.packages(p); err != nil {
				return err
			}
		}
	}
	described := distribution.Program{
		Name: program.Clusterctl, Summary: clusterctlSummary, Description: clusterctlDescription, Homepage: d.homepage(),
		Version: r.version, Downloads: downloads,
	}
	formula, err := described.Formula()
	if err != nil {
		return err
	}
	if err := f.write(formulaFile, program.Clusterctl, 0o600, formula); err != nil {
		return err
	}
	plugin, err := described.Krew()
	if err != nil {
		return err
	}
	return f.write(krewFile, program.Clusterctl, 0o600, plugin)
}

// homepage is the project's page, beside its releases.
func (d *distributor) homepage() string { return strings.TrimSuffix(d.releases, "/releases") }

// archive writes clusterctl for a platform, with its manual and completion.
func (d *distributor) archive(p program.Platform) (distribution.Download, error) {
	content, err := d.executable(program.Clusterctl, p)
	if err != nil {
		return distribution.Download{}, err
	}
	name := program.Clusterctl
	if p.OS == "windows" {
		name += ".exe"
	}
	files := []distribution.File{
		{Path: name, Mode: 0o755, Content: content}, {Path: "LICENSE", Mode: 0o644, Content: d.license},
	}
	completion, err := completions(program.Clusterctl)
	if err != nil {
		return distribution.Download{}, err
	}
	for _, shell := range completion {
		files = append(files, distribution.File{Path: "completions/" + shell.file, Mode: 0o644, Content: shell.content})
	}
	for _, page := range d.manuals {
		files = append(files, distribution.File{Path: "man/" + page.Path, Mode: 0o644, Content: page.Content})
	}
	archive, err := distribution.Archive(files, d.time)
	if err != nil {
		return distribution.Download{}, err
	}
	file := program.Clusterctl + "-" + p.OS + "-" + p.Arch + ".tar.gz"
	url := d.releases + "/download/" + d.version + "/" + file
	return distribution.NewDownload(p.OS, p.Arch, url, archive, name), d.folder.write(file, program.Clusterctl, 0o600, archive)
}

// packages writes packages of clusterctl and capi for Debian and RPM.
func (d *distributor) packages(p program.Platform) error {
	for _, described := range []distribution.Package{
		{Name: program.Clusterctl, Summary: clusterctlSummary, Description: clusterctlDescription},
		{Name: program.Capi, Summary: capiSummary, Description: capiDescription, AfterInstall: capiAfterInstall, BeforeRemove: capiBeforeRemove},
	} {
		described.Version, described.Arch, described.Time = d.version, p.Arch, d.time
		described.Homepage, described.Maintainer = d.homepage(), maintainer
		common, err := d.installed(described.Name, p)
		if err != nil {
			return err
		}
		completion, err := completions(described.Name)
		if err != nil {
			return err
		}
		// What the distributions have in different folders.
		described.Files = append(common,
			completion.zsh("usr/share/zsh/vendor-completions/"),
			distribution.File{Path: "usr/share/doc/" + described.Name + "/copyright", Mode: 0o644, Content: d.license, License: true})
		deb, err := described.Deb()
		if err != nil {
			return err
		}
		if err := d.folder.write(described.DebFile(), described.Name, 0o600, deb); err != nil {
			return err
		}
		described.Files = append(common,
			completion.zsh("usr/share/zsh/site-functions/"),
			distribution.File{Path: "usr/share/licenses/" + described.Name + "/LICENSE", Mode: 0o644, Content: d.license, License: true})
		rpm, err := described.RPM()
		if err != nil {
			return err
		}
		file, err := described.RPMFile()
		if err != nil {
			return err
		}
		if err := d.folder.write(file, described.Name, 0o600, rpm); err != nil {
			return err
		}
	}
	return nil
}

// installed returns the files of a program that all distributions have in the same folders.
func (d *distributor) installed(name string, p program.Platform) ([]distribution.File, error) {
	content, err := d.executable(name, p)
	if err != nil {
		return nil, err
	}
	bill, err := os.ReadFile(filepath.Join(d.folder.path, name+"-"+p.Suffix()+".spdx.json"))
	if err != nil {
		return nil, err
	}
	completion, err := completions(name)
	if err != nil {
		return nil, err
	}
	files := []distribution.File{
		{Path: "usr/bin/" + name, Mode: 0o755, Content: content},
		{Path: "usr/share/doc/" + name + "/" + name + ".spdx.json", Mode: 0o644, Content: bill},
		{Path: "usr/share/bash-completion/completions/" + name, Mode: 0o644, Content: completion[0].content},
		{Path: "usr/share/fish/vendor_completions.d/" + name + ".fish", Mode: 0o644, Content: completion[2].content},
	}
	if name == program.Capi {
		for file, path := range map[string]string{
			"capi.service": "usr/lib/systemd/system/capi.service", "capi.sysusers": "usr/lib/sysusers.d/capi.conf",
		} {
			content, err := os.ReadFile(filepath.Join(d.files, file))
			if err != nil {
				return nil, err
			}
			files = append(files, distribution.File{Path: path, Mode: 0o644, Content: content})
		}
		return files, nil
	}
	for _, page := range d.manuals {
		packed, err := distribution.Compressed(page.Content)
		if err != nil {
			return nil, err
		}
		files = append(files, distribution.File{Path: "usr/share/man/man1/" + page.Path + ".gz", Mode: 0o644, Content: packed})
	}
	return files, nil
}

// executable reads a program of the release.
func (d *distributor) executable(name string, p program.Platform) ([]byte, error) {
	return os.ReadFile(filepath.Join(d.folder.path, name+"-"+p.Suffix()))
}

// newClusterctl returns clusterctl's commands, for its manual.
func newClusterctl() *cobra.Command {
	nothing := func(string) (string, bool) { return "", false }
	return clusterctl.NewCmd(factory.New(&iostreams.Streams{In: &bytes.Buffer{}, Out: &bytes.Buffer{}, Err: &bytes.Buffer{}}, nothing, nil))
}

// manualPages returns a page for each command, in the format of man.
func (d *distributor) manualPages(cmd *cobra.Command) ([]distribution.File, error) {
	if !cmd.IsAvailableCommand() && cmd.HasParent() || cmd.IsAdditionalHelpTopicCommand() {
		return nil, nil
	}
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
	cmd.DisableAutoGenTag = true
	var page bytes.Buffer
	header := &doc.GenManHeader{
		Title: strings.ToUpper(name), Section: "1", Date: &d.time, Source: cmd.Root().Name() + " " + d.version, Manual: "Cluster API",
	}
	if err := doc.GenMan(cmd, header, &page); err != nil {
		return nil, fmt.Errorf("manual of %s: %w", cmd.CommandPath(), err)
	}
	pages := []distribution.File{{Path: name + ".1", Mode: 0o644, Content: page.Bytes()}}
	for _, sub := range cmd.Commands() {
		more, err := d.manualPages(sub)
		if err != nil {
			return nil, err
		}
		pages = append(pages, more...)
	}
	return pages, nil
}

// shells have the completion of a program for bash, zsh and fish, in this order.
type shells []shell

// shell has a program's completion for one shell.
type shell struct {
	// file is its name in an archive.
	file    string
	content []byte
}

// zsh returns the completion for zsh in a folder of its function path.
func (s shells) zsh(folder string) distribution.File {
	return distribution.File{Path: folder + s[1].file, Mode: 0o644, Content: s[1].content}
}

// completions returns the completion of a program, which asks the program itself: it depends on its name alone.
func completions(name string) (shells, error) {
	cmd := &cobra.Command{Use: name}
	var bash, zsh, fish bytes.Buffer
	if err := cmd.GenBashCompletionV2(&bash, true); err != nil {
		return nil, err
	}
	if err := cmd.GenZshCompletion(&zsh); err != nil {
		return nil, err
	}
	if err := cmd.GenFishCompletion(&fish, true); err != nil {
		return nil, err
	}
	return shells{{name + ".bash", bash.Bytes()}, {"_" + name, zsh.Bytes()}, {name + ".fish", fish.Bytes()}}, nil
}
