package machine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/sync/errgroup"

	"sigs.k8s.io/cluster-api/infrastructure/docker/internal/engine"
	"sigs.k8s.io/cluster-api/infrastructure/docker/internal/job"
	"sigs.k8s.io/cluster-api/provider/step"
)

// loadTimeout is how long copying all images into a container may take.
const loadTimeout = 15 * time.Minute

// loading is the job that copies images into the container.
const loading = "preload"

// importScript imports an image from its input into containerd, and marks it as imported.
const importScript = `set -e
until [ -S /run/containerd/containerd.sock ] && ctr version >/dev/null 2>&1; do sleep 0.1; done
ctr --namespace k8s.io images import - >&2
mkdir -p "${1%/*}"
: >"$1"
`

// preload copies images from the host into the container. Each image is marked in the container once it is there, so that it is not
// copied again after a restart of the manager.
func (c *Controller) preload(_ context.Context, s *scope) (step.Result, error) {
	key, images, container := s.jobKey(loading), s.obj.Spec.PreLoadImages, s.Container()
	if len(images) == 0 || s.HadContainer() {
		return step.Done().KeepCondition(), nil
	}
	loaded := job.Run(c.jobs, key, func(ctx context.Context) (struct{}, error) {
		ctx, cancel := context.WithTimeout(ctx, loadTimeout)
		defer cancel()
		for _, image := range images {
			if err := c.load(ctx, container, image); err != nil {
				return struct{}{}, fmt.Errorf("loading image %s into container %s: %w", image, container, err)
			}
		}
		return struct{}{}, nil
	})
	switch {
	case loaded.Running:
		return step.Wait("images to be loaded into container " + container).KeepCondition(), nil
	case loaded.Err != nil:
		c.jobs.Forget(key)
		return step.Done(), failed(loaded.Err)
	}
	return step.Done().KeepCondition(), nil
}

func (c *Controller) load(ctx context.Context, container, image string) error {
	sum := sha256.Sum256([]byte(image))
	mark := "/var/lib/cluster-api/images/" + hex.EncodeToString(sum[:16])
	err := c.engine.Exec(ctx, container, engine.Command{Args: []string{"test", "-e", mark}})
	if exit := (*engine.ExitError)(nil); !errors.As(err, &exit) {
		return err
	}
	if err := c.engine.EnsureImage(ctx, image); err != nil {
		return err
	}
	from, to := io.Pipe()
	both, ctx := errgroup.WithContext(ctx)
	both.Go(func() error {
		err := c.engine.SaveImage(ctx, image, to)
		_ = to.CloseWithError(err) // It never fails.
		return err
	})
	both.Go(func() error {
		err := c.engine.Exec(ctx, container, engine.Command{Args: []string{"/bin/sh", "-c", importScript, "import", mark}, Stdin: from})
		_ = from.CloseWithError(err) // As above. It ends the other side.
		return err
	})
	return both.Wait()
}
