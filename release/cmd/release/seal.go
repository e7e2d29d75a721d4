package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"sigs.k8s.io/cluster-api/release/attestation"
	"sigs.k8s.io/cluster-api/release/signature"
)

const (
	// checksumsFile has the SHA-256 checksums of all other files, as sha256sum writes them.
	checksumsFile = "SHA256SUMS"
	// provenanceFile states how the files were made: an in-toto statement, in an envelope if it is signed.
	provenanceFile = "provenance.json"
	publicKeyFile  = "cosign.pub"
)

// seal writes the provenance and the checksums of all files of a release and, with a key, their signatures.
func seal(ctx context.Context, f *folder, build attestation.Build, key *signature.Key) error {
	sums, err := f.checksums()
	if err != nil {
		return err
	}
	statement, err := attestation.NewStatement(sums, attestation.SLSA, build.Predicate())
	if err != nil {
		return err
	}
	if key != nil {
		if statement, err = key.Envelope(ctx, statement, attestation.PayloadType); err != nil {
			return err
		}
	}
	const all = "the whole release"
	if err := f.write(provenanceFile, all, 0o600, append(statement, '\n')); err != nil {
		return err
	}
	if sums, err = f.checksums(); err != nil {
		return err
	}
	var list bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		fmt.Fprintf(&list, "%s  %s\n", sums[name], name)
	}
	if err := f.write(checksumsFile, all, 0o600, list.Bytes()); err != nil || key == nil {
		return err
	}
	signed, err := key.Blob(ctx, list.Bytes())
	if err != nil {
		return err
	}
	if err := f.write(checksumsFile+".sig", all, 0o600, signed); err != nil {
		return err
	}
	public, err := key.Public()
	if err != nil {
		return err
	}
	return f.write(publicKeyFile, all, 0o600, public)
}

// checksums returns the checksums of all files that were written, in hexadecimal, by name.
func (f *folder) checksums() (map[string]string, error) {
	out := map[string]string{}
	for name := range f.from {
		content, err := os.ReadFile(filepath.Join(f.path, name))
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(content)
		out[name] = hex.EncodeToString(sum[:])
	}
	return out, nil
}
