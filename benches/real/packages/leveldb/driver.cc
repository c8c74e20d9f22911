// Threads that write to and read from one database, and compactions beside them.
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "leveldb/cache.h"
#include "leveldb/db.h"
#include "leveldb/options.h"
#include "leveldb/write_batch.h"

namespace {

constexpr int kThreads = 3;
constexpr int kRounds = 6;

void Check(const leveldb::Status& status, const char* what) {
  if (status.ok()) return;
  std::printf("%s: %s\n", what, status.ToString().c_str());
  std::fflush(stdout);
  _exit(1);
}

std::string Key(int thread, int round) {
  return "key" + std::to_string(thread) + "/" + std::to_string(round);
}

// A value of a few kilobytes, so that the table in memory is full soon.
std::string Value(int thread, int round) { return std::string(4000, static_cast<char>('a' + thread * kRounds + round)); }

void Use(leveldb::DB* db, int thread) {
  for (int round = 0; round < kRounds; round++) {
    leveldb::WriteBatch batch;
    batch.Put(Key(thread, round), Value(thread, round));
    batch.Put("last" + std::to_string(thread), std::to_string(round));
    Check(db->Write(leveldb::WriteOptions(), &batch), "write");
    std::string value;
    Check(db->Get(leveldb::ReadOptions(), Key(thread, round), &value), "get");
    if (value != Value(thread, round)) Check(leveldb::Status::Corruption("another value"), "get");
    if (round == kRounds / 2) Check(db->Delete(leveldb::WriteOptions(), Key(thread, 0)), "delete");
  }
}

}  // namespace

int main() {
  // As long in every run.
  char name[32];
  std::snprintf(name, sizeof name, "leveldb-%010d", static_cast<int>(syscall(SYS_getpid)));
  leveldb::Options options;
  options.create_if_missing = true;
  options.write_buffer_size = 64 << 10;
  options.compression = leveldb::kNoCompression;
  std::unique_ptr<leveldb::Cache> cache(leveldb::NewLRUCache(1 << 16));
  options.block_cache = cache.get();
  leveldb::DestroyDB(name, options);
  leveldb::DB* db = nullptr;
  Check(leveldb::DB::Open(options, name, &db), "open");
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; thread++) threads.emplace_back(Use, db, thread);
  for (auto& thread : threads) thread.join();
  db->CompactRange(nullptr, nullptr);

  int n_keys = 0;
  std::unique_ptr<leveldb::Iterator> entries(db->NewIterator(leveldb::ReadOptions()));
  for (entries->SeekToFirst(); entries->Valid(); entries->Next()) {
    n_keys++;
    if (entries->key().starts_with("last"))
      std::printf("%s %s\n", entries->key().ToString().c_str(), entries->value().ToString().c_str());
  }
  Check(entries->status(), "iterate");
  entries.reset();
  std::printf("%d keys\n", n_keys);
  delete db;
  Check(leveldb::DestroyDB(name, options), "destroy");
  return 0;
}
