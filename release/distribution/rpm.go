package distribution

import (
	"bytes"
	"fmt"

	"github.com/google/rpmpack"
)

// rpmRelease is the release of the package itself: there is one for each version.
const rpmRelease = "1"

// rpmArch names the architecture as RPM does.
func (p Package) rpmArch() (string, error) {
	arch, ok := map[string]string{"amd64": "x86_64", "arm64": "aarch64", "ppc64le": "ppc64le", "s390x": "s390x", "riscv64": "riscv64"}[p.Arch]
	if !ok {
		return "", fmt.Errorf("architecture %s of %s has no name in RPM: add it", p.Arch, p.Name)
	}
	return arch, nil
}

// RPMFile is the name of the file of an RPM package.
func (p Package) RPMFile() (string, error) {
	arch, err := p.rpmArch()
	return fmt.Sprintf("%s-%s-%s.%s.rpm", p.Name, p.version(), rpmRelease, arch), err
}

// RPM returns the package in the format of RPM.
func (p Package) RPM() ([]byte, error) {
	arch, err := p.rpmArch()
	if err != nil {
		return nil, err
	}
	r, err := rpmpack.NewRPM(rpmpack.RPMMetaData{
		Name: p.Name, Version: p.version(), Release: rpmRelease, Arch: arch, Summary: p.Summary,
		Description: p.Description, Licence: "Apache-2.0", URL: p.Homepage, Packager: p.Maintainer,
		BuildTime: p.Time, BuildHost: "localhost", Compressor: "gzip:9",
	})
	if err != nil {
		return nil, fmt.Errorf("RPM of %s: %w", p.Name, err)
	}
	for _, f := range sorted(p.Files) {
		kind := rpmpack.GenericFile
		if f.License {
			kind = rpmpack.LicenceFile
		}
		r.AddFile(rpmpack.RPMFile{
			Name: "/" + f.Path, Body: f.Content, Mode: uint(f.Mode.Perm()), Owner: "root", Group: "root", Type: kind,
			MTime: uint32(p.Time.Unix()),
		})
	}
	if p.AfterInstall != "" {
		r.AddPostin(p.AfterInstall)
	}
	if p.BeforeRemove != "" { // The argument is the number of versions that remain.
		r.AddPreun("[ \"$1\" = 0 ] || exit 0\n" + p.BeforeRemove)
	}
	var out bytes.Buffer
	if err := r.Write(&out); err != nil {
		return nil, fmt.Errorf("RPM of %s: %w", p.Name, err)
	}
	return out.Bytes(), nil
}
