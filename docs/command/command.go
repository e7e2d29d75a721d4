// Package command has the command `docs`, which is the same in clusterctl and capi: it serves the book of the program, or writes it.
//
// How the book is rendered does not belong here; that is docs/manual.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"sigs.k8s.io/cluster-api/docs/manual"
	"sigs.k8s.io/cluster-api/sdk/version"
)

const (
	// defaultAddress is a free port of this machine alone, so that the books of two programs can be read side by side.
	defaultAddress = "127.0.0.1:0"
	// requestTimeout is how long a request or a response may take. All are small.
	requestTimeout = 30 * time.Second
	// stopTimeout is how long responses may take when the command is interrupted.
	stopTimeout = 2 * time.Second
)

// Options are the inputs of the command.
type Options struct {
	Out     io.Writer
	Version version.Info
	// Address is where the book is served, HOST:PORT.
	Address string
	// OutputDir, if set, is the directory that the book is written into instead.
	OutputDir string
	// Pages returns the generated pages of the book.
	Pages func() ([]manual.Generated, error)
}

// Pages returns the generated pages of a program's book, given its root command.
type Pages func(root *cobra.Command) ([]manual.Generated, error)

// New returns the command. path is how users call it, such as "capi docs", for its examples. pages, which may be nil, returns the generated
// pages of the book. runF, if not nil, is run instead.
func New(path string, info version.Info, pages Pages, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{Version: info, Pages: func() ([]manual.Generated, error) { return nil, nil }}
	cmd := &cobra.Command{
		Use:   "docs",
		Short: "Read the book of this version in a browser",
		Long: `Serve the book of this version, with search, until the command is interrupted. Open the printed URL in a browser.

Everything is in this program: neither the command nor the pages access the internet. The default address can only be reached from this
machine. With --output-dir, the book is written into a directory instead, for reading without the program, or for a web server.`,
		Example: fmt.Sprintf(`  # Serve the book on a free port
  %[1]s

  # Serve it on a fixed port
  %[1]s --address 127.0.0.1:8000

  # Write it, and read it without a server
  %[1]s --output-dir book
  xdg-open book/index.html`, path),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("address") && o.OutputDir != "" {
				return fmt.Errorf("--address and --output-dir exclude each other: the book is either served or written")
			}
			o.Out = cmd.OutOrStdout()
			if pages != nil {
				o.Pages = func() ([]manual.Generated, error) { return pages(cmd.Root()) }
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			if runF != nil {
				return runF(ctx, o)
			}
			return run(ctx, o)
		},
	}
	cmd.Flags().StringVar(&o.Address, "address", defaultAddress, "The `address` to serve the book on, HOST:PORT. Port 0 is a free one")
	cmd.Flags().StringVar(&o.OutputDir, "output-dir", "", "Write the book into this `directory`, which is created if needed")
	for name, complete := range map[string]cobra.ShellCompDirective{
		"address": cobra.ShellCompDirectiveNoFileComp, "output-dir": cobra.ShellCompDirectiveFilterDirs,
	} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(nil, complete)) // It fails for unknown flags only.
	}
	return cmd
}

func run(ctx context.Context, o *Options) error {
	pages, err := o.Pages()
	if err != nil {
		return fmt.Errorf("generating reference pages: %w", err)
	}
	site, err := manual.New(o.Version, pages...)
	if err != nil {
		return fmt.Errorf("rendering the book: %w", err)
	}
	if o.OutputDir != "" {
		if err := site.Write(o.OutputDir); err != nil {
			return fmt.Errorf("--output-dir: %w", err)
		}
		_, err := fmt.Fprintf(o.Out, "The book of %s is in %s: open %s in a browser\n",
			o.Version.GitVersion, o.OutputDir, filepath.Join(o.OutputDir, "index.html"))
		return err
	}
	return serve(ctx, o, site)
}

// serve serves a site until the context ends.
func serve(ctx context.Context, o *Options, site http.Handler) error {
	if _, _, err := net.SplitHostPort(o.Address); err != nil {
		return fmt.Errorf("--address is %q: it must be HOST:PORT, such as 127.0.0.1:8000", o.Address)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.Address)
	if err != nil {
		return fmt.Errorf("--address: cannot %w: set another one, such as %s, which is a free port", err, defaultAddress)
	}
	server := &http.Server{
		Handler: site, ReadTimeout: requestTimeout, WriteTimeout: requestTimeout, IdleTimeout: 2 * requestTimeout, MaxHeaderBytes: 16 << 10,
	}
	if _, err := fmt.Fprintf(o.Out, "The book of %s is at http://%s (end with Ctrl+C)\n", o.Version.GitVersion, listener.Addr()); err != nil {
		return errors.Join(err, listener.Close())
	}
	ended := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		ended <- server.Shutdown(last)
	})
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		stop()
		return fmt.Errorf("serving the book: %w", err)
	}
	if err := <-ended; err != nil { // A client is slow: what it misses is not lost.
		return server.Close()
	}
	return nil
}
