package etcdsnapshot

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

// Count returns how many of the keys that exist at the newest revision are of each class. classOf returns the class of a key and its value,
// which are only valid during the call; the class "" is not counted. It needs memory for each key that is counted.
func Count(ctx context.Context, path string, classOf func(key string, value []byte) string) (map[string]int, error) {
	file, _, err := openChecked(ctx, path)
	if err != nil {
		return nil, err
	}
	defer closing(file)
	classes := map[string]string{}
	err = guarded(func() error {
		db, err := bbolt.Open(path, 0, &bbolt.Options{ReadOnly: true, Timeout: time.Second})
		if err != nil {
			return fmt.Errorf("opening the snapshot: %w", err)
		}
		defer closing(db)
		return db.View(func(tx *bbolt.Tx) error { return classify(ctx, tx, classes, classOf) })
	})
	if err != nil {
		return nil, err
	}
	counts := map[string]int{}
	for _, class := range classes {
		counts[class]++
	}
	return counts, nil
}

// classify reads all revisions, in their order, and keeps the class of the latest one of each key.
func classify(ctx context.Context, tx *bbolt.Tx, classes map[string]string, classOf func(key string, value []byte) string) error {
	bucket := tx.Bucket([]byte(keyBucket))
	if bucket == nil {
		return fmt.Errorf("%w: it has no bucket %q, so it is no database of etcd", ErrDamaged, keyBucket)
	}
	read := 0
	return bucket.ForEach(func(key, value []byte) error {
		if read++; read%1000 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		_, deleted, valid := parseRevision(key)
		var entry mvccpb.KeyValue
		if !valid || entry.Unmarshal(value) != nil {
			return errors.Join(ErrDamaged, errors.New("a revision is invalid"))
		}
		class := ""
		if !deleted {
			class = classOf(string(entry.Key), entry.Value)
		}
		if class == "" {
			delete(classes, string(entry.Key))
		} else {
			classes[string(entry.Key)] = class
		}
		return nil
	})
}
