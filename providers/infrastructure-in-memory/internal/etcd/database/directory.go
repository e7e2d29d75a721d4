package database

import (
	"archive/tar"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud"
)

const (
	// maxDatabase limits the size of a database, and maxUnpacked that of a whole data directory, in bytes. A log has 64 MiB.
	maxDatabase = 512 << 20
	maxUnpacked = 2 << 30
	// maxFiles limits the number of files in a data directory.
	maxFiles = 1000
	// logHead is how much of the log is read: it begins with who its member is.
	logHead = 4 << 10
)

// Directory is the content of etcd's data directory.
type Directory struct {
	// Content is the objects, and their revision.
	Content *cloud.Content
	// Cluster and Self identify the etcd cluster and the member.
	Cluster, Self uint64
	// Members are the members of the cluster.
	Members []Member
}

// ReadDirectory reads a gzipped tar of etcd's data directory, of any origin: the database member/snap/db, and the beginning of the log in
// member/wal. Other files are ignored.
func ReadDirectory(archive io.Reader) (*Directory, error) {
	zipped, err := gzip.NewReader(archive)
	if err != nil {
		return nil, errors.New("it is not a gzipped tar")
	}
	d, log := &Directory{}, ""
	files := tar.NewReader(io.LimitReader(zipped, maxUnpacked))
	for n := 0; ; n++ {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil || n >= maxFiles {
			return nil, fmt.Errorf("it is not a tar of at most %d files and %d bytes", maxFiles, maxUnpacked)
		}
		switch name := path.Clean(header.Name); {
		case header.Typeflag != tar.TypeReg:
		case name == "member/snap/db":
			if d.Content, d.Members, err = extract(files, header.Size); err != nil {
				return nil, err
			}
		case strings.HasPrefix(name, "member/wal/") && path.Ext(name) == ".wal" && (log == "" || name < log):
			log = name
			if d.Cluster, d.Self, err = identity(files); err != nil {
				return nil, fmt.Errorf("read %.200q: %w", name, err)
			}
		}
	}
	switch {
	case d.Content == nil:
		return nil, errors.New("it has no member/snap/db")
	case log == "":
		return nil, errors.New("it has no log in member/wal")
	}
	return d, nil
}

// extract reads a database through a temporary file without a name.
func extract(from io.Reader, size int64) (*cloud.Content, []Member, error) {
	if size > maxDatabase {
		return nil, nil, fmt.Errorf("member/snap/db has %d bytes, the limit is %d", size, maxDatabase)
	}
	file, err := os.CreateTemp("", "capim-etcd-")
	if err != nil {
		return nil, nil, fmt.Errorf("create a temporary file: %w", err)
	}
	err = os.Remove(file.Name())
	if err == nil {
		_, err = io.Copy(file, from)
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("unpack member/snap/db: %w", err), file.Close())
	}
	return Read(file)
}

// Types of records of etcd's log, and the bits of a record's length that are its padding.
const (
	metadataType = 1
	lengthBits   = 56
)

// identity reads from the beginning of a log which cluster and member it belongs to.
func identity(log io.Reader) (cluster, member uint64, err error) {
	head, err := io.ReadAll(io.LimitReader(log, logHead))
	if err != nil {
		return 0, 0, err
	}
	for len(head) >= 8 {
		field := binary.LittleEndian.Uint64(head)
		length, padding := field&(1<<lengthBits-1), uint64(0)
		if field>>63 == 1 {
			padding = field >> lengthBits & 7
		}
		head = head[8:]
		if length == 0 || length+padding > uint64(len(head)) {
			break
		}
		var record walpb.Record
		if err := record.Unmarshal(head[:length]); err != nil {
			return 0, 0, errors.New("the log is invalid")
		}
		if record.Type == metadataType {
			var metadata etcdserverpb.Metadata
			if err := metadata.Unmarshal(record.Data); err != nil || metadata.ClusterID == 0 || metadata.NodeID == 0 {
				break
			}
			return metadata.ClusterID, metadata.NodeID, nil
		}
		head = head[length+padding:]
	}
	return 0, 0, errors.New("the log does not begin with the identity of a member")
}
