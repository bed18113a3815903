import { npmArchive } from './workbench.ts';

/**
 * A small archive with what is odd in the real one: an empty name, a leading space, upper case, a
 * package that depends on itself, one without dependents, the same pair in both lists.
 */
export function madeUpArchive(): Buffer {
  return npmArchive(
    {
      react: ['react-dom', 'gulp-react', ' odd'],
      gulp: ['gulp-sass', 'gulp-react'],
      '': ['gulp-sass'],
      self: ['self'],
    },
    {
      gulp: ['gulp-sass', 'react-dom'],
      react_router: [],
      'js-yaml': ['gulp-sass', 'GULP--Sass_'],
    },
  );
}

/** Its nodes by id. */
export const madeUpNames = [
  '',
  ' odd',
  'GULP--Sass_',
  'gulp',
  'gulp-react',
  'gulp-sass',
  'js-yaml',
  'react',
  'react-dom',
  'self',
];
