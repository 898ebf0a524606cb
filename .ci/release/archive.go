package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"io"
	"time"
)

// archive returns the program with its licences and readme, packed as is usual on the
// platform.
func (s *source) archive(p platform, program []byte, with []file) (file, error) {
	files := append([]file{{p.program(), 0o755, program}}, with...)
	name := "mcpconform_" + s.version.npm() + "_" + p.os + "_" + p.arch
	pack, ending := tarGz, ".tar.gz"
	if p.os == "windows" {
		pack, ending = zipped, ".zip"
	}
	data, err := pack(s.date, files)
	return file{name + ending, 0o644, data}, err
}

// tarGz packs files into a tar archive whose bytes follow from them and the date.
func tarGz(date time.Time, files []file) ([]byte, error) {
	var b bytes.Buffer
	compressed, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	w := tar.NewWriter(compressed)
	for _, f := range files {
		if err := w.WriteHeader(&tar.Header{
			Typeflag: tar.TypeReg, Name: f.name, Mode: int64(f.mode), Size: int64(len(f.data)), ModTime: date,
			Format: tar.FormatUSTAR,
		}); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	if err := compressed.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// zipped packs files into a zip archive whose bytes follow from them and the date.
func zipped(date time.Time, files []file) ([]byte, error) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	w.RegisterCompressor(zip.Deflate, func(out io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(out, flate.BestCompression)
	})
	for _, f := range files {
		header := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: date}
		header.SetMode(f.mode)
		entry, err := w.CreateHeader(header)
		if err != nil {
			return nil, err
		}
		if _, err := entry.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
