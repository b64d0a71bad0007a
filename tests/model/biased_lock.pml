// SPDX-License-Identifier: BSD-3-Clause
// match/biased_lock.hpp, and how match/shards.hpp closes over it. Any of three threads may
// come first; that one's stores to `inside` leave its processor later, in their order.
// BROKEN has no barrier. BROKEN_END takes a bias that is ending for one that has gone.
#define NOBODY 9
mtype = { valid, ending, gone }
mtype bias = valid;
byte first = NOBODY;
bit held, shut, inside;
byte users;                   // of what the lock protects
chan stores = [2] of { bit }  // to inside, on their way

#ifdef BROKEN_END
#define over (bias != valid)
#else
#define over (bias == gone)
#endif

active proctype memory() {
  bit value;
end:
  do
  :: atomic { stores ? value -> inside = value }
  od
}

inline use() {
  users++;
  assert(users == 1);
  users--
}

inline revoke() {
  bias = ending;
#ifndef BROKEN
  empty(stores);              // barrier in all threads
#endif
  !inside;
  bias = gone
}

inline revoke_of_another() {
  if
  :: over || first == NOBODY || first == me -> skip
  :: else -> revoke()
  fi
}

// alone: whether it may take the first thread's way, which looks at no gate.
inline call() {
  alone = 0;
  if
  :: first == me ->
     stores ! 1;
     if
     :: bias == valid -> alone = 1; use()
     :: else -> skip
     fi;
     stores ! 0
  :: else -> skip
  fi;
  do
  :: alone -> break
  :: else ->
     !shut;
     atomic { !held && (first != me || empty(stores)) -> held = 1 };  // an exchange waits for stores
     if
     :: over -> skip
     :: !over && first == NOBODY -> first = me
     :: else -> revoke_of_another()
     fi;
     if
     :: shut -> held = 0
     :: else -> use(); held = 0; break
     fi
  od
}

inline close_and_reopen() {
  shut = 1;
  !held;
  revoke_of_another();
  use();
  shut = 0
}

proctype caller(byte me) {
  bit alone;
  call();
  call();
  call()
}

proctype closer(byte me) {
  bit alone;
  close_and_reopen();
  call();
  close_and_reopen()
}

init { atomic { run caller(0); run caller(1); run closer(2) } }
