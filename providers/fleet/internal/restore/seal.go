package restore

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"sigs.k8s.io/cluster-api/backup/restorescript"
)

// sealed is data that is encrypted under a key of its own, and hashed.
type sealed struct {
	key, iv []byte
	stream  cipher.Stream
	sum     hash.Hash
	size    int64
}

// newSealed returns a sealed with a new key.
func newSealed() (*sealed, error) {
	s := &sealed{key: make([]byte, restorescript.KeySize), iv: make([]byte, aes.BlockSize), sum: sha256.New()}
	rand.Read(s.key) // It never fails.
	rand.Read(s.iv)
	block, err := aes.NewCipher(s.key)
	if err != nil {
		return nil, err
	}
	s.stream = cipher.NewCTR(block, s.iv)
	return s, nil
}

// writer returns a writer that writes what it is given to another one, encrypted.
func (s *sealed) writer(to io.Writer) io.Writer {
	return cipher.StreamWriter{S: s.stream, W: io.MultiWriter(to, s)}
}

// Write hashes encrypted data.
func (s *sealed) Write(p []byte) (int, error) {
	s.size += int64(len(p))
	return s.sum.Write(p)
}

// config returns what decrypts the data, without its URL.
func (s *sealed) config() restorescript.Config {
	return restorescript.Config{
		SHA256: hex.EncodeToString(s.sum.Sum(nil)), Key: hex.EncodeToString(s.key), IV: hex.EncodeToString(s.iv),
	}
}

// writeTar writes a gzipped tar of a directory: its folders and regular files, owned by root.
func writeTar(ctx context.Context, w io.Writer, dir string) error {
	zipped, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return err
	}
	files := tar.NewWriter(zipped)
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		return addEntry(files, path, filepath.ToSlash(name), entry)
	})
	if err != nil {
		return fmt.Errorf("packing the data of etcd: %w", err)
	}
	return errors.Join(files.Close(), zipped.Close())
}

func addEntry(files *tar.Writer, path, name string, entry fs.DirEntry) error {
	if entry.IsDir() {
		return files.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o700})
	}
	info, err := entry.Info()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", name)
	}
	if err := files.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o600, Size: info.Size()}); err != nil {
		return err
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // It is only read.
	_, err = io.Copy(files, file)
	return err
}
