package recordedcluster

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"sigs.k8s.io/cluster-api/clusterctl/takeover/difference"
)

// Storage is the storage of a management cluster: etcd, as the API server uses it. Objects that are written there keep their UIDs,
// managedFields and status, which no request to the API server can set.
type Storage struct {
	// Etcd is the connection.
	Etcd *clientv3.Client
}

// Open connects to the etcd of a running capi with a data directory.
func Open(dataDir string) (*Storage, error) {
	run, err := filepath.EvalSymlinks(filepath.Join(dataDir, "run"))
	if err != nil {
		return nil, err
	}
	var sockets []string
	for _, pattern := range []string{"etcd.sock", filepath.Join("*", "etcd.sock")} {
		found, err := filepath.Glob(filepath.Join(run, pattern))
		if err != nil {
			return nil, err
		}
		sockets = append(sockets, found...)
	}
	if len(sockets) != 1 {
		return nil, fmt.Errorf("the program in %s has sockets %v of etcd, want one", dataDir, sockets)
	}
	etcd, err := clientv3.New(clientv3.Config{
		Endpoints: []string{"unix://" + sockets[0]}, DialOptions: []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())},
	})
	if err != nil {
		return nil, fmt.Errorf("connecting to etcd: %w", err)
	}
	return &Storage{Etcd: etcd}, nil
}

// Close closes the connection.
func (s *Storage) Close() error { return s.Etcd.Close() }

// Put stores objects of custom resources as they are, all at once: the garbage collector deletes an object whose owner comes later.
func (s *Storage) Put(ctx context.Context, objects ...*unstructured.Unstructured) error {
	var puts []clientv3.Op
	for _, o := range objects {
		o = o.DeepCopy()
		o.SetResourceVersion("") // It is the revision of the storage.
		// The same bytes as those of the API server, which does not write an object again if it encodes it to the same.
		content, err := runtime.Encode(unstructured.UnstructuredJSONScheme, o)
		if err != nil {
			return err
		}
		puts = append(puts, clientv3.OpPut(key(o), string(content)))
	}
	_, err := s.Etcd.Txn(ctx).Then(puts...).Commit()
	return err
}

// key returns the key of an object.
func key(o *unstructured.Unstructured) string {
	resource := strings.ToLower(o.GetKind()) + "s"
	if o.GetKind() == "ClusterClass" {
		resource = "clusterclasses"
	}
	return fmt.Sprintf("/registry/%s/%s/%s/%s", o.GroupVersionKind().Group, resource, o.GetNamespace(), o.GetName())
}

// Objects returns the objects of the custom resources that Clusters have in a namespace, by key.
func (s *Storage) Objects(ctx context.Context, namespace string) (map[string]difference.Stored, error) {
	found := map[string]difference.Stored{}
	for _, group := range []string{"cluster", "bootstrap.cluster", "controlplane.cluster", "infrastructure.cluster"} {
		r, err := s.Etcd.Get(ctx, "/registry/"+group+".x-k8s.io/", clientv3.WithPrefix())
		if err != nil {
			return nil, err
		}
		for _, kv := range r.Kvs {
			if strings.Contains(string(kv.Key), "/"+namespace+"/") {
				found[string(kv.Key)] = difference.Stored{Revision: kv.ModRevision, Content: kv.Value}
			}
		}
	}
	return found, nil
}
